"""No interleaving and no kill breaks the accounting; without any one of its rules some do."""

import pytest

from tests.model.accounting import Protocol, explore

OVER_LIMIT = "more than the limit by the card's account"
LOST_CHARGE = "a living process lost its charge"


@pytest.mark.parametrize(
    ("protocol", "at_least"),
    [
        (Protocol(), 30_000),
        (Protocol(processes=3, allocations=1), 100_000),
    ],
    ids=["two processes, two allocations each", "three, one waits for a dead one's slot"],
)
def test_the_protocol_holds(protocol: Protocol, at_least: int) -> None:
    explored = explore(protocol)
    assert explored.fault is None
    assert explored.refused, "the limit was never put to the test"
    assert explored.states > at_least


@pytest.mark.parametrize(
    ("mistaken", "faults"),
    [
        (Protocol(sums_after_adding=False), {OVER_LIMIT}),
        (Protocol(frees_before_uncharging=False), {OVER_LIMIT, LOST_CHARGE}),
        (Protocol(memory_goes_before_the_lock=False), {OVER_LIMIT}),
        (Protocol(processes=3, sweeps_under_lock=False), {OVER_LIMIT, LOST_CHARGE}),
    ],
    ids=[
        "sum before adding only",
        "uncharge before the driver frees",
        "the lock goes before the memory",
        "sweep without the lock",
    ],
)
def test_each_rule_is_needed(mistaken: Protocol, faults: set[str]) -> None:
    assert explore(mistaken).fault in faults
