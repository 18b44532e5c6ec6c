"""Which processes have no guard, and in whose name that is told."""

import pytest

from casaba.model.gpu_process import GpuProcess
from casaba.model.slice_use import SliceUse
from casaba.model.usage import BudgetUsage
from casaba.policy.guard_watch import bare_processes, foreign_processes, guard_states
from tests.unit.policy.test_usage_metrics import joined, pod_of
from tests.unit.policy.usages import (
    FIRST,
    KEY,
    SECOND,
    budget,
    damaged,
    mounts_of,
    on_card,
    process,
)
from tests.unit.values import A10

MAIN = mounts_of("main", "gpu")


def unguarded(
    slices: tuple[SliceUse, ...],
    usage: BudgetUsage | None,
    processes: list[GpuProcess],
    pod_names: dict[str, str] | None = None,
) -> dict[tuple[str, str], int]:
    """How many are told, by pod and container."""
    bare = bare_processes({KEY: usage}, processes)
    states = guard_states(slices, bare, pod_names or {})
    return {(one.name.pod, one.name.container): one.unguarded for one in states}


def test_a_process_without_a_slot_is_unguarded_and_one_without_budget_is_foreign() -> None:
    usage = budget(process(pid=7))
    slices = joined([pod_of("a", "main")], usage)
    processes = [on_card(100, 7, MAIN), on_card(101, 8, MAIN), on_card(102, 7, None)]
    assert unguarded(slices, usage, processes) == {("a", "main"): 1}
    assert unguarded(slices, usage, processes[:1]) == {("a", "main"): 0}
    assert foreign_processes({A10.uuid: [100, 101, 102]}, processes) == {A10.uuid: 1}


@pytest.mark.parametrize("guarded", [FIRST, SECOND])
def test_every_container_has_a_first_process_and_a_guard_is_its_own(guarded: int) -> None:
    usage = budget(process(pid=1, namespace=guarded))
    slices = joined([pod_of("p", "a", "b")], usage)
    processes = [
        on_card(1001, 1, mounts_of("a", "gpu"), FIRST),
        on_card(1002, 1, mounts_of("b", "gpu"), SECOND),
    ]
    bare = ("p", "b" if guarded == FIRST else "a")
    assert unguarded(slices, usage, processes) == {
        user: int(user == bare) for user in (("p", "a"), ("p", "b"))
    }


@pytest.mark.parametrize(("slot", "own"), [(0, SECOND), (FIRST, 0), (0, 0)])
def test_where_a_namespace_is_not_known_the_pid_decides(slot: int, own: int) -> None:
    usage = budget(process(pid=1, namespace=slot))
    slices = joined([pod_of("p", "main")], usage)
    assert unguarded(slices, usage, [on_card(1, 1, MAIN, own)]) == {("p", "main"): 0}
    assert unguarded(slices, usage, [on_card(1, 2, MAIN, own)]) == {("p", "main"): 1}


def test_of_pods_that_share_a_claim_only_the_one_with_the_bare_process_is_told() -> None:
    usage = budget(process(pid=1))
    slices = joined([pod_of("p1", "c"), pod_of("p2", "c")], usage)
    processes = [
        on_card(1001, 9, mounts_of("c", "gpu", pod_uid="one")),
        on_card(1002, 1, mounts_of("c", "gpu", pod_uid="two")),
    ]
    names = {"one": "p1", "two": "p2"}
    assert unguarded(slices, usage, processes, names) == {("p1", "c"): 1, ("p2", "c"): 0}
    nobody_knows = unguarded(slices, usage, processes)
    assert nobody_knows == {("p1", "c"): 1, ("p2", "c"): 1}


@pytest.mark.parametrize("usage", [None, damaged()])
def test_where_the_slots_cant_be_read_nobody_is_judged(usage: BudgetUsage | None) -> None:
    budgets = [] if usage is None else [usage]
    slices = joined([pod_of("p", "main")], *budgets, unread=[] if budgets else [KEY])
    assert unguarded(slices, usage, [on_card(1, 2, MAIN)]) == {}
