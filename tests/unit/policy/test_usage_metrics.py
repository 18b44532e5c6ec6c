"""Whom the use of a slice is told of, and that nothing is told twice."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from casaba.model.card_reading import CardReading
from casaba.model.claim import AllocatedClaim
from casaba.model.gpu_process import ContainerMounts, GpuProcess
from casaba.model.ids import ClaimUid, GpuUuid
from casaba.model.limits import CardLimits, CardUsage, Policy
from casaba.model.node_use import NodeUse
from casaba.model.pod_use import ClaimInUse, PodInUse
from casaba.model.slice_use import ContainerName, SliceUse
from casaba.model.usage import BudgetUsage, CardTimes, ProcessUsage
from casaba.policy.guard_watch import foreign_processes, guard_states
from casaba.policy.usage_history import UsageHistory
from casaba.policy.usage_join import join_usage, known_requests, unresolved
from casaba.policy.usage_metrics import usage_families
from casaba.wire.exposition import render
from tests.unit.values import A10, CLAIM_UID, MIB, one_claim, one_share

SECOND_NS = 1_000_000_000
GPUS = {A10.device_name: A10}


def process(pid: int = 1, asked: int = MIB, launches: int = 0, last_ns: int = 0) -> ProcessUsage:
    return ProcessUsage(
        pid=pid,
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
    *processes: ProcessUsage, request: str = "gpu", busy_ns: int = 0, uid: str = CLAIM_UID
) -> BudgetUsage:
    card = CardLimits(
        gpu=A10.uuid,
        memory_bytes=10 * MIB,
        context_allowance_bytes=MIB,
        context_size_bytes=0,
        cores_percent=50,
    )
    return BudgetUsage(
        claim=uid,
        request=request,
        policy=Policy(cards=(card,), announce=False),
        processes=processes,
        refusals=2,
        times=(CardTimes(busy_ns=busy_ns, wait_ns=7),),
    )


def pod_of(name: str, *containers: str, claim: str = "claim") -> PodInUse:
    use = ClaimInUse(namespace="default", name=claim, devices=())
    return PodInUse(
        namespace="default", name=name, containers=tuple((one, (use,)) for one in containers)
    )


def joined(
    pods: Iterable[PodInUse],
    *budgets: BudgetUsage,
    claims: Iterable[AllocatedClaim] = (one_claim(one_share()),),
    mounts: Iterable[ContainerMounts] = (),
    history: UsageHistory | None = None,
) -> tuple[SliceUse, ...]:
    return join_usage(
        claims,
        GPUS,
        pods,
        {(one.claim, one.request): one for one in budgets},
        history or UsageHistory(),
        known_requests(mounts),
    )


def node_use(slices: tuple[SliceUse, ...]) -> NodeUse:
    return NodeUse(
        node="edge-1",
        gpus=(A10,),
        readings={A10.uuid: CardReading(gpu=A10.uuid, memory_used_bytes=5)},
        slices=slices,
        guards=guard_states(slices, ()),
        foreign={},
        boot_time_ns=SECOND_NS,
        pods_told=True,
    )


def samples(slices: tuple[SliceUse, ...], name: str) -> list[tuple[dict[str, str], float]]:
    text = render(usage_families(node_use(slices), legacy=True)).decode()
    found: dict[Any, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return [(dict(labels), value) for (told, labels), value in found.items() if told == name]


USED = "hami_vgpu_memory_used_bytes"


def test_a_container_alone_is_told_by_name() -> None:
    (slice_,) = joined([pod_of("a", "main")], budget(process(asked=3 * MIB)))
    assert slice_.owner == ContainerName(pod="a", container="main")
    ((labels, value),) = samples((slice_,), USED)
    assert (labels["pod"], labels["container"], value) == ("a", "main", 3 * MIB)


def test_what_containers_share_is_told_once_of_their_pod() -> None:
    slices = joined([pod_of("a", "main", "side")], budget(process()))
    ((labels, _),) = samples(slices, USED)
    assert (labels["pod"], labels["container"]) == ("a", "")
    users = {labels["container"] for labels, _ in samples(slices, "casaba_slice_user")}
    assert users == {"main", "side"}


def test_what_pods_share_is_told_once_of_none() -> None:
    slices = joined([pod_of("a", "main"), pod_of("b", "main")], budget(process()))
    ((labels, value),) = samples(slices, USED)
    assert (labels["pod"], labels["container"], value) == ("", "", MIB)


def test_the_mounts_of_containers_tell_their_requests() -> None:
    claim = one_claim(one_share(request="big"), one_share(request="small"))
    budgets = (budget(process(), request="big"), budget(request="small"))
    pods = [pod_of("a", "main", "side")]
    mounts = [
        ContainerMounts(container="main", budgets=frozenset({(CLAIM_UID, "big")})),
        ContainerMounts(container="side", budgets=frozenset({(CLAIM_UID, "small")})),
    ]
    before = joined(pods, *budgets, claims=[claim])
    assert unresolved(before, {})
    after = joined(pods, *budgets, claims=[claim], mounts=mounts)
    assert not unresolved(after, known_requests(mounts))
    assert [(one.request, one.owner.container) for one in after] == [
        ("big", "main"),
        ("small", "side"),
    ]


def test_two_budgets_of_one_container_on_one_card_are_added_up() -> None:
    claim = one_claim(one_share(request="big"), one_share(request="small"))
    budgets = (budget(process(), request="big"), budget(process(), request="small"))
    slices = joined([pod_of("a", "main")], *budgets, claims=[claim])
    ((labels, value),) = samples(slices, USED)
    assert (labels["vdevice_index"], value) == ("0", 2 * MIB)
    assert len(samples(slices, "casaba_slice_memory_used_bytes")) == 2


def test_a_budget_that_is_not_there_yet_has_its_limits() -> None:
    (slice_,) = joined([])
    ((_, limit),) = samples((slice_,), "hami_vgpu_memory_limit_bytes")
    assert limit == one_share().memory_bytes
    assert slice_.owner == ContainerName()


def test_utilisation_is_the_mean_since_the_last_reading_that_is_old_enough() -> None:
    history = UsageHistory()
    key = (CLAIM_UID, "gpu")
    for second, busy_s in ((0, 0), (10, 5), (11, 6), (12, 7), (16, 11)):
        history.observe([budget(busy_ns=busy_s * SECOND_NS)], second * SECOND_NS)
        if second == 10:
            assert history.card_percent(key, 0) == 50.0
    assert history.card_percent(key, 0) == 100.0  # since second 11
    history.observe([], 20 * SECOND_NS)
    assert history.card_percent(key, 0) is None


def test_utilisation_is_told_at_once_only_of_who_never_used_the_card() -> None:
    history = UsageHistory()
    key = (CLAIM_UID, "gpu")
    for busy_ns, told in ((0, [0.0]), (5 * SECOND_NS, [])):
        history.observe([], 0)
        history.observe([budget(busy_ns=busy_ns)], SECOND_NS)
        slices = joined([pod_of("a", "main")], budget(busy_ns=busy_ns), history=history)
        for name in ("casaba_slice_utilization_ratio", "hami_container_device_utilization_ratio"):
            assert [value for _, value in samples(slices, name)] == told
    assert history.card_percent(key, 0) is None


def test_launches_of_ended_processes_stay_and_a_pid_that_comes_again_is_another() -> None:
    history = UsageHistory()
    key = (CLAIM_UID, "gpu")
    history.observe([budget(process(1, launches=10), process(2, launches=1))], 0)
    history.observe([budget(process(1, launches=3))], 1)
    assert history.launches(key) == 14


@given(
    st.lists(
        st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), min_size=1, max_size=6
    )
)
def test_whatever_a_tenant_tells_stays_in_its_range(told: list[tuple[int, int]]) -> None:
    history = UsageHistory()
    before = 0
    for second, (busy_ns, launches) in enumerate(told):
        history.observe([budget(process(launches=launches), busy_ns=busy_ns)], second * SECOND_NS)
        percent = history.card_percent((CLAIM_UID, "gpu"), 0)
        assert percent is None or 0 <= percent <= 100
        assert history.launches((CLAIM_UID, "gpu")) >= before
        before = history.launches((CLAIM_UID, "gpu"))


def gpu_process(pid: int, inner: int, *budgets: tuple[str, str]) -> GpuProcess:
    mounts = ContainerMounts(container="main", budgets=frozenset(budgets)) if budgets else None
    return GpuProcess(pid=pid, inner_pid=inner, mounts=mounts)


def test_a_process_without_a_slot_is_unguarded_and_one_without_budget_is_foreign() -> None:
    slices = joined([pod_of("a", "main")], budget(process(pid=7)))
    own = (CLAIM_UID, "gpu")
    processes = [gpu_process(100, 7, own), gpu_process(101, 8, own), gpu_process(102, 7)]
    (state,) = guard_states(slices, processes)
    assert (state.name.container, state.guarded, state.unguarded) == ("main", 1, 1)
    (fine,) = guard_states(slices, processes[:1])
    assert fine.unguarded == 0
    assert foreign_processes({A10.uuid: [100, 101, 102]}, processes) == {A10.uuid: 1}


names = st.sampled_from(["a", "b", "c"])
pods_strategy = st.lists(
    st.builds(
        lambda pod, containers, claim: pod_of(pod, *containers, claim=claim),
        names,
        st.lists(names, max_size=3, unique=True),
        st.sampled_from(["claim-0", "claim-1"]),
    ),
    max_size=4,
    unique_by=lambda pod: pod.name,
)


@given(pods_strategy, st.integers(1, 2), st.integers(1, 3))
def test_no_series_comes_twice_and_sums_are_those_of_the_budgets(
    pods: list[PodInUse], claim_count: int, request_count: int
) -> None:
    claims, budgets = [], []
    for number in range(claim_count):
        uid = ClaimUid(f"{number}" * 8 + CLAIM_UID[8:])
        requests = [f"r{index}" for index in range(request_count)]
        shares = tuple(one_share(request=request) for request in requests)
        claims.append(
            AllocatedClaim(namespace="default", name=f"claim-{number}", uid=uid, shares=shares)
        )
        budgets += [budget(process(), request=request, uid=uid) for request in requests]
    slices = joined(pods, *budgets, claims=claims)
    assert sum(value for _, value in samples(slices, USED)) == len(budgets) * MIB
    assert sum(value for _, value in samples(slices, "casaba_refusals_total")) == 2 * len(budgets)


def test_a_card_that_does_not_answer_is_unhealthy_and_tells_nothing_else() -> None:
    other = GpuUuid("GPU-00000000-0000-0000-0000-000000000000")
    use = node_use(())
    assert samples((), "casaba_card_healthy")[0][1] == 1
    broken = NodeUse(
        **{
            **{name: getattr(use, name) for name in use.__dataclass_fields__},
            "readings": {A10.uuid: CardReading(gpu=other, error="lost")},
        }
    )
    text = render(usage_families(broken)).decode()
    assert 'casaba_card_healthy{node="edge-1"' in text
    assert "} 0\n" in text
    assert "hami_host_gpu_memory_used_bytes{" not in text
