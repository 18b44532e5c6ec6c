"""The side that is asked: our allocator, or with `--real` the scheduler of the real cluster."""

import asyncio
from collections.abc import Callable

import pytest

from tests.conformance.allocator import ours, real
from tests.conformance.allocator.case import Case, Outcome
from tests.conformance.allocator.cases import CASES
from tests.conformance.allocator.generated import CLUSTERS, generated

Ask = Callable[[Case, str], Outcome]


@pytest.fixture(scope="session")
def ask(on_real: bool, request: pytest.FixtureRequest) -> Ask:
    """What the side makes of a case on a node; the real one is asked everything at once."""
    if not on_real:
        return ours.outcome
    kubeconfig = request.getfixturevalue("bed").kubeconfig
    asked = [(case, node) for case in CASES for node in case.expected]
    asked += [(generated(number), node) for number in range(CLUSTERS) for node in "ab"]
    found = asyncio.run(real.outcomes(kubeconfig, asked))
    answers = {(case.name, node): outcome for case, node, outcome in found}
    return lambda case, node: answers[case.name, node]
