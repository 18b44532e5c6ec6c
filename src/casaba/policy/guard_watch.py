"""Which processes on the cards run without a guard, as far as the host can know.

The guard takes its slot before it first calls the driver: a process that has a context on a card
and no slot in any budget of its container is not guarded. One that has not touched a card yet says
nothing, and neither does one whose mounts, or whose budgets' regions, can't be read.
"""

from collections.abc import Iterable, Mapping
from operator import itemgetter

from casaba.model.gpu_process import GpuProcess
from casaba.model.ids import GpuUuid
from casaba.model.slice_use import ContainerName, GuardState, SliceUse
from casaba.model.usage import BudgetUsage
from casaba.policy.container_mounts import PodNames
from casaba.policy.usage_history import BudgetKey

_Guarded = Mapping[BudgetKey, frozenset[tuple[int, int]]]
"""PID namespace and PID of each process that has a slot, by budget."""

_ANY_NAMESPACE = 0


def bare_processes(
    budgets: Mapping[BudgetKey, BudgetUsage | None], processes: Iterable[GpuProcess]
) -> tuple[GpuProcess, ...]:
    """Those of tenants that have no guard."""
    suspects = [one for one in processes if one.mounts]
    if not suspects:
        return ()
    guarded: _Guarded = {
        key: frozenset((one.pid_namespace, one.pid) for one in budget.processes)
        for key, budget in budgets.items()
        if budget is not None and not budget.damaged
    }
    return tuple(one for one in suspects if _is_bare(one, guarded))


def _is_bare(process: GpuProcess, guarded: _Guarded) -> bool:
    own = process.mounts.budgets if process.mounts else frozenset()
    if not own or not own <= guarded.keys():
        return False
    return not any(_has_slot(process, guarded[budget]) for budget in own)


def _has_slot(process: GpuProcess, slots: frozenset[tuple[int, int]]) -> bool:
    """An unknown namespace is any: an older guard's, or that of a process that can't be read."""
    if process.pid_namespace == _ANY_NAMESPACE:
        return any(pid == process.inner_pid for _, pid in slots)
    own = {(one, process.inner_pid) for one in (process.pid_namespace, _ANY_NAMESPACE)}
    return not own.isdisjoint(slots)


def guard_states(
    slices: Iterable[SliceUse], bare: Iterable[GpuProcess], pod_names: PodNames
) -> tuple[GuardState, ...]:
    """One for each container whose budgets can all be read.

    Shared budgets count for each container that has them; a bare process whose pod's name is not
    known counts for every pod that it can belong to.
    """
    bare = tuple(bare)
    budgets: dict[tuple[str, str, str], list[SliceUse]] = {}
    for one in slices:
        for user in one.users:
            budgets.setdefault((one.namespace, user.pod, user.container), []).append(one)
    return tuple(
        GuardState(
            namespace=namespace,
            name=ContainerName(pod=pod, container=container),
            guarded=sum([len(one.pids or ()) for one in own]),
            unguarded=sum([_is_of(one, pod, container, own, pod_names) for one in bare]),
        )
        for (namespace, pod, container), own in sorted(budgets.items(), key=itemgetter(0))
        if all(one.pids is not None for one in own)
    )


def _is_of(
    process: GpuProcess, pod: str, container: str, own: list[SliceUse], pod_names: PodNames
) -> bool:
    mounts = process.mounts
    if mounts is None or mounts.container != container:
        return False
    if pod_names.get(mounts.pod_uid, pod) != pod:
        return False
    claims = {claim for claim, _ in mounts.budgets}
    return any(one.claim_uid in claims for one in own)


def foreign_processes(
    on_cards: Mapping[GpuUuid, Iterable[int]], processes: Iterable[GpuProcess]
) -> dict[GpuUuid, int]:
    """Processes on each card that have no budget of ours: they are not limited."""
    ours = {process.pid for process in processes if process.mounts}
    return {gpu: len(set(pids) - ours) for gpu, pids in on_cards.items()}
