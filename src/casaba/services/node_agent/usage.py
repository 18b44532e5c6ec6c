"""Reads what this node's cards and slices do now: regions, NVML, /proc, and the kubelet's pods."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from casaba.errors import HostError
from casaba.model.card_reading import CardReading
from casaba.model.claim import AllocatedClaim
from casaba.model.gpu import Gpu
from casaba.model.gpu_process import ContainerMounts, GpuProcess
from casaba.model.ids import GpuUuid
from casaba.model.node_use import NodeUse
from casaba.model.pod_use import PodInUse
from casaba.model.slice_use import SliceUse
from casaba.model.usage import BudgetUsage
from casaba.net.pod_resources import list_pods
from casaba.node.gpu_processes import ProcessReader
from casaba.node.nvidia.readings import read_cards
from casaba.node.usage import read_budget
from casaba.policy.guard_watch import foreign_processes, guard_states
from casaba.policy.usage_history import BudgetKey, UsageHistory
from casaba.policy.usage_join import join_usage, known_requests, unresolved
from casaba.settings.node_agent import NodeAgentSettings

log = logging.getLogger(__name__)

SEARCH_APART_S = 10.0
"""How often all processes are searched for containers whose requests nobody tells."""


@dataclass(frozen=True)
class _HostUse:
    """What the host itself tells, read while the kubelet is asked."""

    readings: dict[GpuUuid, CardReading]
    budgets: dict[BudgetKey, BudgetUsage]
    pids: set[int]
    processes: tuple[GpuProcess, ...]
    boot_time_ns: int


class UsageReader:
    """Makes one reading at a time; what it needs to remember from one to the next it keeps."""

    def __init__(
        self,
        settings: NodeAgentSettings,
        claims: Callable[[], tuple[AllocatedClaim, ...]],
        gpus: Callable[[], tuple[Gpu, ...]],
    ) -> None:
        self._settings = settings
        self._claims = claims
        self._gpus = gpus
        self._one_at_a_time = asyncio.Lock()
        self._pods: tuple[PodInUse, ...] = ()
        self._pods_told = True
        self._history = UsageHistory()
        self._processes = ProcessReader(settings.proc_root)
        self._mounts: frozenset[ContainerMounts] = frozenset()
        self._searched_s: float | None = None

    async def read(self) -> NodeUse:
        """A reading; what can't be read is left out of it, and nothing is raised for it."""
        async with self._one_at_a_time:
            claims, gpus = self._claims(), self._gpus()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ask_kubelet())
                host = group.create_task(asyncio.to_thread(self._read_host, claims, gpus))
            return await asyncio.to_thread(self._use_of, host.result(), claims, gpus)

    async def _ask_kubelet(self) -> None:
        try:
            self._pods = await list_pods(
                self._settings.pod_resources_socket, self._settings.pod_resources_timeout_s
            )
        except HostError as error:
            if self._pods_told:
                log.warning("pods.not_told", extra={"reason": str(error)})
            self._pods_told = False
        else:
            self._pods_told = True

    def _read_host(self, claims: tuple[AllocatedClaim, ...], gpus: tuple[Gpu, ...]) -> _HostUse:
        readings = read_cards(self._settings.driver_root, gpus)
        budgets = self._read_budgets(claims)
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self._history.observe(budgets.values(), now_ns)
        pids = _pids(readings)
        processes = self._processes.processes(pids)
        self._remember(claims, (one.mounts for one in processes if one.mounts))
        return _HostUse(readings, budgets, pids, processes, now_ns)

    def _use_of(
        self, host: _HostUse, claims: tuple[AllocatedClaim, ...], gpus: tuple[Gpu, ...]
    ) -> NodeUse:
        slices = self._joined(claims, gpus, host.budgets)
        if unresolved(slices, known_requests(self._mounts)):
            if self._may_search():
                self._remember(claims, self._processes.all_containers())
                slices = self._joined(claims, gpus, host.budgets)
        else:
            self._processes.forget_all_but(host.pids)
        on_cards = {gpu: reading.pids for gpu, reading in host.readings.items()}
        return NodeUse(
            node=self._settings.node_name,
            gpus=gpus,
            readings=host.readings,
            slices=slices,
            guards=guard_states(slices, host.processes),
            foreign=foreign_processes(on_cards, host.processes),
            boot_time_ns=host.boot_time_ns,
            pods_told=self._pods_told,
        )

    def _read_budgets(self, claims: Iterable[AllocatedClaim]) -> dict[BudgetKey, BudgetUsage]:
        claims_dir = self._settings.paths.claims_dir
        found: dict[BudgetKey, BudgetUsage] = {}
        for claim in claims:
            for request in dict.fromkeys(share.request for share in claim.shares):
                try:
                    budget = read_budget(claims_dir, claim.uid, request)
                except HostError as error:
                    log.warning("budget.not_read", extra={"reason": str(error)})
                    continue
                if budget is not None:
                    found[claim.uid, request] = budget
        return found

    def _joined(
        self,
        claims: tuple[AllocatedClaim, ...],
        gpus: tuple[Gpu, ...],
        budgets: dict[BudgetKey, BudgetUsage],
    ) -> tuple[SliceUse, ...]:
        return join_usage(
            claims,
            {gpu.device_name: gpu for gpu in gpus},
            self._pods,
            budgets,
            self._history,
            known_requests(self._mounts),
        )

    def _remember(
        self, claims: Iterable[AllocatedClaim], mounts: Iterable[ContainerMounts]
    ) -> None:
        """What containers of living claims have mounted; it never changes during their life."""
        living = {claim.uid for claim in claims}
        told = self._mounts | frozenset(mounts)
        self._mounts = frozenset(
            one for one in told if any(claim in living for claim, _ in one.budgets)
        )

    def _may_search(self) -> bool:
        now_s = time.monotonic()
        if self._searched_s is not None and now_s - self._searched_s < SEARCH_APART_S:
            return False
        self._searched_s = now_s
        return True


def _pids(readings: dict[GpuUuid, CardReading]) -> set[int]:
    return {pid for reading in readings.values() for pid in reading.pids}
