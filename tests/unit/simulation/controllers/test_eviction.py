"""How long a pod stays on a node that drives pods away."""

from datetime import UTC, datetime, timedelta

from casaba.simulation.controllers.eviction import stays_until
from casaba.simulation.workloads.objects import Taint, Toleration

NOW = datetime(2030, 1, 1, tzinfo=UTC)
UNREACHABLE = Taint(
    key="node.kubernetes.io/unreachable", effect="NoExecute", time_added="2029-12-31T23:59:00Z"
)


def tolerated(seconds: int | None) -> Toleration:
    return Toleration(operator="Exists", toleration_seconds=seconds)


def test_a_taint_that_is_not_tolerated_leaves_no_time() -> None:
    assert stays_until([UNREACHABLE], [], NOW) == NOW


def test_a_toleration_counts_from_the_taint_and_the_shortest_counts() -> None:
    until = stays_until([UNREACHABLE], [tolerated(300), tolerated(120), tolerated(None)], NOW)
    assert until == NOW + timedelta(seconds=60)


def test_a_negative_toleration_is_none_and_a_huge_one_is_for_ever() -> None:
    assert stays_until([UNREACHABLE], [tolerated(-5)], NOW) == NOW - timedelta(seconds=60)
    assert stays_until([UNREACHABLE], [tolerated(2**63 - 1)], NOW) is None


def test_other_effects_drive_nobody_away() -> None:
    assert stays_until([Taint(key="a", effect="NoSchedule")], [], NOW) is None
