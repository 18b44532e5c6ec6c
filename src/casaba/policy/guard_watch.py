"""Which processes on the cards run without a guard, as far as the host can know.

The guard takes its slot before it first calls the driver: a process that has a context on a card
and no slot in any budget of its container is not guarded. One that has not touched a card yet says
nothing, and neither does one whose mounts can't be read.
"""

from collections.abc import Iterable, Mapping
from operator import itemgetter

from casaba.model.gpu_process import GpuProcess
from casaba.model.ids import GpuUuid
from casaba.model.slice_use import ContainerName, GuardState, SliceUse


def guard_states(
    slices: Iterable[SliceUse], processes: Iterable[GpuProcess]
) -> tuple[GuardState, ...]:
    """One for each container that has a budget; shared budgets count for each of them."""
    slices = tuple(slices)
    pids: dict[tuple[str, str], tuple[int, ...]] = {
        (one.claim_uid, one.request): one.pids for one in slices
    }
    unguarded: dict[tuple[str, str], set[int]] = {}
    for process in processes:
        if process.mounts and not _is_guarded(process, pids):
            for claim, _ in process.mounts.budgets:
                key = (claim, process.mounts.container)
                unguarded.setdefault(key, set()).add(process.pid)
    return tuple(_states(slices, unguarded))


def _is_guarded(process: GpuProcess, pids: Mapping[tuple[str, str], tuple[int, ...]]) -> bool:
    assert process.mounts is not None
    return any(process.inner_pid in pids.get(budget, ()) for budget in process.mounts.budgets)


def _states(
    slices: tuple[SliceUse, ...], unguarded: Mapping[tuple[str, str], set[int]]
) -> Iterable[GuardState]:
    budgets: dict[tuple[str, str, str], list[SliceUse]] = {}
    for one in slices:
        for user in one.users:
            budgets.setdefault((one.namespace, user.pod, user.container), []).append(one)
    for (namespace, pod, container), own in sorted(budgets.items(), key=itemgetter(0)):
        bare = [unguarded.get((one.claim_uid, container), ()) for one in own]
        yield GuardState(
            namespace=namespace,
            name=ContainerName(pod=pod, container=container),
            guarded=sum([len(one.pids) for one in own]),
            unguarded=len(set().union(*bare)),
        )


def foreign_processes(
    on_cards: Mapping[GpuUuid, Iterable[int]], processes: Iterable[GpuProcess]
) -> dict[GpuUuid, int]:
    """Processes on each card that have no budget of ours: they are not limited."""
    ours = {process.pid for process in processes if process.mounts}
    return {gpu: len(set(pids) - ours) for gpu, pids in on_cards.items()}
