"""Our allocator and the real kube-scheduler make the same of the same claims."""

from collections.abc import Callable

import pytest

from tests.conformance.allocator import ours
from tests.conformance.allocator.accounts import overbooked
from tests.conformance.allocator.case import Case, Outcome
from tests.conformance.allocator.cases import CASES
from tests.conformance.allocator.generated import CLUSTERS, generated

# The real side answers all questions in the first test.
_EVERYTHING_ON_REAL_S = 400

Ask = Callable[[Case, str], Outcome]


@pytest.mark.timeout(_EVERYTHING_ON_REAL_S)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_written_case(case: Case, ask: Ask) -> None:
    for node, expected in case.expected.items():
        seen = ask(case, node)
        assert ours.agrees(expected, seen), f"on {node}: {seen}"


@pytest.mark.timeout(_EVERYTHING_ON_REAL_S)
@pytest.mark.parametrize("number", range(CLUSTERS))
def test_a_generated_cluster(number: int, ask: Ask) -> None:
    case = generated(number)
    for node in "ab":
        expected = ours.outcome(case, node)
        seen = ask(case, node)
        assert ours.agrees(expected, seen), f"on {node}: {seen}, but ours says {expected}"
        assert not overbooked(case, ours.devices_given(case, node))
