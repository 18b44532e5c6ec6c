"""Budgets, processes and readings as the agent's parts make them of a node's files."""

from collections.abc import Iterable

from casaba.model.gpu_process import ContainerMounts, GpuProcess
from casaba.model.limits import CardLimits, CardUsage, Policy
from casaba.model.usage import BudgetUsage, CardTimes, ProcessUsage
from casaba.policy.lone_use import LoneUse
from casaba.policy.usage_history import BudgetKey, Reading
from tests.unit.values import A10, CLAIM_UID, MIB

SECOND_NS = 1_000_000_000
KEY = (CLAIM_UID, "gpu")
POD_UID = "99999999-2222-3333-4444-555555555555"
FIRST, SECOND = 4026532001, 4026532002
"""PID namespaces."""


def process(
    pid: int = 1,
    asked: int = MIB,
    launches: int = 0,
    last_ns: int = 0,
    *,
    slot: int = 0,
    started_ns: int = 0,
    namespace: int = FIRST,
) -> ProcessUsage:
    """One that a region tells of."""
    return ProcessUsage(
        slot=slot,
        pid=pid,
        pid_namespace=namespace,
        started_ns=started_ns,
        guard_version=0,
        cards=(CardUsage(asked_bytes=asked, overhead_bytes=0),),
        kinds_bytes=(asked, 0, 0, 0, 0, 0, 0, 0),
        peak_bytes=asked,
        refusals=0,
        launches=launches,
        gpu_time_ns=0,
        wait_ns=0,
        last_launch_ns=last_ns,
    )


def budget(
    *processes: ProcessUsage,
    request: str = "gpu",
    busy_ns: int = 0,
    uid: str = CLAIM_UID,
    cores: int = 50,
    region_id: int = 7,
) -> BudgetUsage:
    """A budget on the card of the scenario."""
    card = CardLimits(
        gpu=A10.uuid,
        memory_bytes=10 * MIB,
        context_allowance_bytes=MIB,
        context_size_bytes=0,
        cores_percent=cores,
    )
    return BudgetUsage(
        claim=uid,
        request=request,
        policy=Policy(cards=(card,), announce=False),
        processes=processes,
        refusals=2,
        times=(CardTimes(busy_ns=busy_ns, wait_ns=7),),
        region_id=region_id,
    )


def damaged() -> BudgetUsage:
    """One over whose region its tenant wrote."""
    whole = budget()
    return BudgetUsage(
        claim=whole.claim,
        request=whole.request,
        policy=whole.policy,
        processes=(),
        refusals=0,
        damaged=True,
    )


def reading(
    second: float,
    *budgets: BudgetUsage,
    lone: LoneUse | None = None,
    unread: Iterable[BudgetKey] = (),
) -> Reading:
    """All budgets at a moment; `lone` is of each of them."""
    found: dict[BudgetKey, BudgetUsage | None] = {(one.claim, one.request): one for one in budgets}
    return Reading(
        now_ns=int(second * SECOND_NS),
        budgets=found | dict.fromkeys(unread),
        lone=dict.fromkeys(found, (lone,)) if lone else {},
    )


def mounts_of(container: str, *requests: str, pod_uid: str = POD_UID) -> ContainerMounts:
    """Of a container that has these requests of the claim."""
    budgets = frozenset((CLAIM_UID, request) for request in requests)
    return ContainerMounts(pod_uid=pod_uid, container=container, budgets=budgets)


def on_card(
    pid: int, inner: int, mounts: ContainerMounts | None, namespace: int = FIRST
) -> GpuProcess:
    """A process with a context on the card."""
    return GpuProcess(pid=pid, inner_pid=inner, pid_namespace=namespace, mounts=mounts)
