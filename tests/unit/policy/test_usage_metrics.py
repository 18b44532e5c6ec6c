"""Whom the use of a slice is told of, and that nothing is told twice."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from casaba.model.card_reading import CardReading
from casaba.model.claim import AllocatedClaim
from casaba.model.gpu_process import ContainerMounts
from casaba.model.ids import ClaimUid, GpuUuid
from casaba.model.node_use import NodeUse
from casaba.model.pod_use import ClaimInUse, PodInUse
from casaba.model.slice_use import ContainerName, SliceUse
from casaba.model.usage import BudgetUsage
from casaba.policy.container_mounts import PodNames, claims_to_ask, known_mounts
from casaba.policy.guard_watch import guard_states
from casaba.policy.usage_history import BudgetKey, UsageHistory
from casaba.policy.usage_join import join_usage, unresolved
from casaba.policy.usage_metrics import usage_families
from casaba.wire.exposition import render
from tests.unit.policy.usages import KEY, SECOND_NS, budget, damaged, mounts_of, process, reading
from tests.unit.values import A10, CLAIM_UID, MIB, one_claim, one_share

GPUS = {A10.device_name: A10}


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
    pod_names: PodNames | None = None,
    history: UsageHistory | None = None,
    unread: Iterable[BudgetKey] = (),
) -> tuple[SliceUse, ...]:
    """What is told after a reading; `unread` budgets are there and can't be read."""
    told = reading(1, *budgets, unread=unread)
    if history is None:
        history = UsageHistory()
        history.observe(told)
    return join_usage(
        claims, GPUS, pods, told.budgets, history, known_mounts(mounts, pod_names or {})
    )


def node_use(slices: tuple[SliceUse, ...]) -> NodeUse:
    return NodeUse(
        node="edge-1",
        gpus=(A10,),
        readings={A10.uuid: CardReading(gpu=A10.uuid, memory_used_bytes=5)},
        slices=slices,
        guards=guard_states(slices, (), {}),
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
        mounts_of("main", "big"),
        mounts_of("side", "small"),
    ]
    before = joined(pods, *budgets, claims=[claim])
    assert unresolved(before, known_mounts((), {}))
    after = joined(pods, *budgets, claims=[claim], mounts=mounts)
    assert not unresolved(after, known_mounts(mounts, {}))
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


def test_pods_that_share_a_claim_are_told_apart_by_their_names() -> None:
    claim = one_claim(one_share(request="a"), one_share(request="b"))
    pods = [pod_of("p1", "c"), pod_of("p2", "c")]
    mounts = [mounts_of("c", "a", pod_uid="one"), mounts_of("c", "b", pod_uid="two")]

    def users(names: dict[str, str]) -> list[list[str]]:
        slices = joined(pods, claims=[claim], mounts=mounts, pod_names=names)
        return [[user.pod for user in one.users] for one in slices]

    assert users({"one": "p1", "two": "p2"}) == [["p1"], ["p2"]]
    assert users({}) == [["p1", "p2"], ["p1", "p2"]]
    known = known_mounts(mounts, {"one": "p1"})
    assert claims_to_ask([claim], pods, known) == (claim,)
    assert claims_to_ask([claim], pods[:1], known) == ()
    assert claims_to_ask([claim], pods, known_mounts(mounts, {"one": "p1", "two": "p2"})) == ()


COUNTERS = (
    "casaba_gpu_seconds_total",
    "casaba_wait_seconds_total",
    "casaba_refusals_total",
    "casaba_launches_total",
)
GAUGES = (
    USED,
    "casaba_slice_memory_used_bytes",
    "casaba_slice_memory_overhead_bytes",
    "casaba_slice_processes",
    "casaba_slice_utilization_ratio",
    "hami_container_device_utilization_ratio",
    "hami_vgpu_memory_context_bytes",
    "Device_memory_desc_of_container",
)


@pytest.mark.parametrize("lost", ["unread", "damaged"])
def test_what_cant_be_read_once_is_not_told_as_zero(lost: str) -> None:
    pods, history = [pod_of("a", "main")], UsageHistory()
    whole = budget(process(launches=70), busy_ns=SECOND_NS)

    def told(slices: tuple[SliceUse, ...]) -> dict[str, list[float]]:
        return {name: [value for _, value in samples(slices, name)] for name in COUNTERS + GAUGES}

    history.observe(reading(0))
    history.observe(reading(1, whole))
    before = told(joined(pods, whole, history=history))
    budgets, unread = ([damaged()], []) if lost == "damaged" else ([], [KEY])
    history.observe(reading(2, *budgets, unread=unread))
    missing = joined(pods, *budgets, unread=unread, history=history)
    assert told(missing) == {key: [] for key in COUNTERS + GAUGES}
    limits = [value for _, value in samples(missing, "casaba_slice_memory_limit_bytes")]
    assert len(limits) == 1
    history.observe(reading(8, whole))
    after = told(joined(pods, whole, history=history))
    for name in COUNTERS:
        assert after[name] == before[name], name
    assert all(after.values())


def test_a_kernel_that_is_longer_than_a_slices_part_of_the_time_is_told_as_it_is() -> None:
    """It was let go, and it is paid for with waiting afterwards."""
    history = UsageHistory()
    for second, busy_s in ((1, 0), (11, 10)):
        usage = budget(process(), busy_ns=busy_s * SECOND_NS, cores=5)
        history.observe(reading(second, usage))
    slices = joined([pod_of("a", "main")], usage, history=history)
    ((_, ratio),) = samples(slices, "casaba_slice_utilization_ratio")
    assert ratio == pytest.approx(20)
    ((_, percent),) = samples(slices, "hami_container_device_utilization_ratio")
    assert percent == 100
