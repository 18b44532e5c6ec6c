"""What the host's own files tell of its tenants, and what is remembered of them. Blocking."""

import logging
import time
from collections.abc import Iterable
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
from casaba.node.gpu_processes import ProcessReader
from casaba.node.schedules import read_tenants
from casaba.node.usage import read_budget
from casaba.policy.container_mounts import KnownMounts, PodNames, known_mounts
from casaba.policy.guard_watch import bare_processes, foreign_processes, guard_states
from casaba.policy.lone_use import LoneUse, Rates, Tenants, card_rates, lone_uses
from casaba.policy.usage_history import BudgetKey, Reading, UsageHistory
from casaba.policy.usage_join import join_usage, unresolved
from casaba.settings.node_agent import NodeAgentSettings

log = logging.getLogger(__name__)

SEARCH_APART_S = 10.0
"""How often all processes are searched for containers whose requests nobody tells."""

_MOST_MOUNTS = 4096
"""Mounts of so many containers are remembered: a claim can see many pods come and go."""

Readings = dict[GpuUuid, CardReading]


@dataclass(frozen=True)
class Tenancy:
    """What tenants and their guards tell."""

    budgets: dict[BudgetKey, BudgetUsage | None]
    tenants: Tenants

    @property
    def is_lone(self) -> bool:
        """Whether a tenant uses a card unmeasured now."""
        uses = [one for cards in _lone(self, {}).values() for one in cards]
        return any(one is not None and one.present for one in uses)


@dataclass(frozen=True)
class HostUse:
    """What the host itself tells at one moment."""

    readings: Readings
    budgets: dict[BudgetKey, BudgetUsage | None]
    processes: tuple[GpuProcess, ...]
    bare: tuple[GpuProcess, ...]
    boot_time_ns: int


class Seldom:
    """True when it is asked, but not again before a time has passed."""

    def __init__(self, apart_s: float) -> None:
        self._apart_s = apart_s
        self._last_s: float | None = None

    def __call__(self) -> bool:
        now_s = time.monotonic()
        if self._last_s is not None and now_s - self._last_s < self._apart_s:
            return False
        self._last_s = now_s
        return True


class HostReader:
    """Reads budgets, schedules and /proc, for one thread at a time, and follows them."""

    def __init__(self, settings: NodeAgentSettings) -> None:
        self._settings = settings
        self._history = UsageHistory()
        self._processes = ProcessReader(settings.proc_root)
        self._mounts: dict[ContainerMounts, None] = {}
        self._pod_names: dict[str, str] = {}
        self._may_search = Seldom(SEARCH_APART_S)

    @property
    def has_begun(self) -> bool:
        """Whether there was a reading."""
        return self._history.has_begun

    @property
    def known_mounts(self) -> KnownMounts:
        """What containers have mounted, as far as seen."""
        return known_mounts(self._mounts, self._pod_names)

    def name_pods(self, names: PodNames) -> None:
        """Names of pods by UID; those of pods that were never seen are forgotten."""
        seen = {one.pod_uid for one in self._mounts}
        told = self._pod_names | dict(names)
        self._pod_names = {uid: name for uid, name in told.items() if uid in seen}

    def read_tenancy(self, claims: tuple[AllocatedClaim, ...]) -> Tenancy:
        """All budgets of claims, and who shares the cards of those without a cap."""
        budgets = self._read_budgets(claims)
        uncapped = {
            card.gpu
            for budget in budgets.values()
            if budget is not None
            for card in budget.policy.cards
            if not card.is_capped
        }
        return Tenancy(budgets, {gpu: self._read_tenants(gpu) for gpu in uncapped})

    def _read_tenants(self, gpu: GpuUuid) -> frozenset[int]:
        try:
            return read_tenants(self._settings.paths.gpus_dir / gpu, gpu)
        except HostError as error:
            log.warning("schedule.not_read", extra={"reason": str(error)})
            return frozenset()

    def observe(
        self,
        claims: tuple[AllocatedClaim, ...],
        tenancy: Tenancy,
        readings: Readings,
        *,
        is_told: bool = True,
    ) -> HostUse:
        """Follow the budgets to this moment; `is_told`: somebody will hear of it."""
        processes = self._processes.processes(_pids(readings))
        bare = bare_processes(tenancy.budgets, processes)
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        lone = _lone(tenancy, card_rates(readings, processes, bare))
        observe = self._history.observe if is_told else self._history.follow
        observe(Reading(now_ns=now_ns, budgets=tenancy.budgets, lone=lone))
        self._remember(claims, (one.mounts for one in processes if one.mounts))
        return HostUse(readings, tenancy.budgets, processes, bare, now_ns)

    def use_of(
        self,
        host: HostUse,
        claims: tuple[AllocatedClaim, ...],
        gpus: tuple[Gpu, ...],
        pods: tuple[PodInUse, ...],
        pods_told: bool,
    ) -> NodeUse:
        """What was observed, joined with the pods that the kubelet told."""
        slices = self._joined(claims, gpus, pods, host.budgets)
        if unresolved(slices, self.known_mounts):
            if self._may_search():
                self._remember(claims, self._processes.all_containers())
                slices = self._joined(claims, gpus, pods, host.budgets)
        else:
            self._processes.forget_all_but(_pids(host.readings))
        on_cards = {gpu: one.pids for gpu, one in host.readings.items() if one.error is None}
        return NodeUse(
            node=self._settings.node_name,
            gpus=gpus,
            readings=host.readings,
            slices=slices,
            guards=guard_states(slices, host.bare, self._pod_names),
            foreign=foreign_processes(on_cards, host.processes),
            boot_time_ns=host.boot_time_ns,
            pods_told=pods_told,
        )

    def _read_budgets(
        self, claims: Iterable[AllocatedClaim]
    ) -> dict[BudgetKey, BudgetUsage | None]:
        """None: it is there, or was, and can't be read; left out: it is not there yet."""
        claims_dir = self._settings.paths.claims_dir
        found: dict[BudgetKey, BudgetUsage | None] = {}
        for claim in claims:
            for request in dict.fromkeys(share.request for share in claim.shares):
                key = (claim.uid, request)
                try:
                    budget = read_budget(claims_dir, claim.uid, request)
                except HostError as error:
                    log.warning("budget.not_read", extra={"reason": str(error)})
                    found[key] = None
                    continue
                if budget is not None or self._history.knows(key):
                    found[key] = budget
        return found

    def _joined(
        self,
        claims: tuple[AllocatedClaim, ...],
        gpus: tuple[Gpu, ...],
        pods: tuple[PodInUse, ...],
        budgets: dict[BudgetKey, BudgetUsage | None],
    ) -> tuple[SliceUse, ...]:
        return join_usage(
            claims,
            {gpu.device_name: gpu for gpu in gpus},
            pods,
            budgets,
            self._history,
            self.known_mounts,
        )

    def _remember(
        self, claims: Iterable[AllocatedClaim], mounts: Iterable[ContainerMounts]
    ) -> None:
        """What containers of living claims have mounted; it never changes during their life."""
        living = {claim.uid for claim in claims}
        told = self._mounts | dict.fromkeys(mounts)
        kept = [one for one in told if any(claim in living for claim, _ in one.budgets)]
        self._mounts = dict.fromkeys(kept[-_MOST_MOUNTS:])


def _lone(tenancy: Tenancy, rates: Rates) -> dict[BudgetKey, tuple[LoneUse | None, ...]]:
    return {
        key: lone_uses(budget, tenancy.tenants, rates)
        for key, budget in tenancy.budgets.items()
        if budget is not None
    }


def _pids(readings: Readings) -> set[int]:
    return {pid for reading in readings.values() for pid in reading.pids}
