"""Refusals explain themselves; what is left can be asked; releases differ.

What is allocated is held to the real scheduler by the conformance suite.
"""

from itertools import count
from typing import Any

import msgspec
import pytest

from casaba.policy.allocation import (
    CANNOT_ALLOCATE,
    KUBERNETES_1_34,
    KUBERNETES_1_35,
    KUBERNETES_1_36,
    KUBERNETES_1_37,
    Allocated,
    AllocationFailed,
    Allocator,
    Behaviour,
    CandidateNode,
    Refused,
)
from casaba.wire.kubernetes import (
    AllocationResult,
    CapacityRequirements,
    CelSelector,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassConfig,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    ExactDeviceRequest,
    ObjectMeta,
    OpaqueConfig,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

DRIVER = "gpu.example.com"
NODE = CandidateNode(name="edge-1")


def card(name: str, **fields: Any) -> Device:
    shared: dict[str, Any] = {
        "capacity": {
            "memory": DeviceCapacity(value="23028Mi"),
            "cores": DeviceCapacity(value="100"),
        },
        "allow_multiple_allocations": True,
    }
    return Device(name=name, **{**shared, **fields})


def whole(name: str, index: int = 0, **fields: Any) -> Device:
    return Device(name=name, attributes={"index": DeviceAttribute(int_=index)}, **fields)


def slice_(*devices: Device, name: str = "s", pool: str = "edge-1", **fields: Any) -> ResourceSlice:
    count = fields.pop("count", 1)
    return ResourceSlice(
        metadata=ObjectMeta(name=name),
        spec=ResourceSliceSpec(
            driver=DRIVER,
            pool=ResourcePool(name=pool, generation=1, resource_slice_count=count),
            node_name="edge-1",
            devices=devices,
        ),
    )


def selectors(*expressions: str) -> tuple[DeviceSelector, ...]:
    return tuple(DeviceSelector(cel=CelSelector(expression=text)) for text in expressions)


def exactly(name: str = "gpu", cel: tuple[str, ...] = (), **fields: Any) -> DeviceRequest:
    amounts = fields.pop("amounts", None)
    capacity = CapacityRequirements(requests=amounts) if amounts else None
    request = ExactDeviceRequest(
        device_class_name="gpu", selectors=selectors(*cel), capacity=capacity, **fields
    )
    return DeviceRequest(name=name, exactly=request)


def claim(*requests: DeviceRequest, name: str = "c", **fields: Any) -> ResourceClaim:
    return ResourceClaim(
        metadata=ObjectMeta(namespace="ns", name=name),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests, **fields)),
    )


def holder(device: str, share: str | None = None, **amounts: str) -> ResourceClaim:
    result = DeviceRequestAllocationResult(
        request="r",
        driver=DRIVER,
        pool="edge-1",
        device=device,
        share_id=share,
        consumed_capacity=amounts,
    )
    allocation = AllocationResult(devices=DeviceAllocationResult(results=(result,)))
    return ResourceClaim(
        metadata=ObjectMeta(namespace="ns", name="h"),
        status=ResourceClaimStatus(allocation=allocation),
    )


def allocator(
    *slices: ResourceSlice,
    holders: tuple[ResourceClaim, ...] = (),
    expressions: tuple[str, ...] = (),
    behaviour: Behaviour = KUBERNETES_1_36,
    step_limit: int = 10_000,
) -> Allocator:
    spec = DeviceClassSpec(
        selectors=selectors(*expressions),
        config=(DeviceClassConfig(opaque=OpaqueConfig(driver=DRIVER, parameters={"a": 1})),),
    )
    return Allocator(
        slices=slices,
        classes={"gpu": DeviceClass(metadata=ObjectMeta(name="gpu"), spec=spec)},
        allocated=holders,
        behaviour=behaviour,
        new_share_id=map("share-{}".format, count()).__next__,
        step_limit=step_limit,
    )


def why(allocator: Allocator, *claims: ResourceClaim) -> list[str]:
    found = allocator.allocate(NODE, claims)
    assert isinstance(found, Refused)
    return [str(reason) for reason in found.why]


def devices(allocator: Allocator, *claims: ResourceClaim) -> list[str]:
    found = allocator.allocate(NODE, claims)
    assert isinstance(found, Allocated)
    return [result.device for one in found.results for result in one.devices.results]


def test_too_little_room_is_told_with_what_is_left() -> None:
    full = allocator(
        slice_(card("hami-gpu-0")), holders=(holder("hami-gpu-0", "s", memory="21Gi", cores="50"),)
    )
    asked = claim(exactly(amounts={"memory": "10Gi", "cores": "10"}))
    assert why(full, asked) == [
        "hami-gpu-0 on edge-1: 10Gi of memory asked, 1524Mi left of 23028Mi"
    ]


def test_devices_with_one_obstacle_are_told_together() -> None:
    many = allocator(slice_(*(whole(f"g{index}") for index in range(100))), expressions=("false",))
    assert why(many, claim(exactly())) == [
        "100 devices (g0, g1, g2, …) on edge-1: class selector does not match: false"
    ]


def test_every_obstacle_is_told() -> None:
    some = allocator(
        slice_(
            whole("g0"),
            whole("g1", index=1),
            whole("g2", index=1, taints=(DeviceTaint(key="k", value="v", effect="NoSchedule"),)),
        ),
        holders=(holder("g1"),),
    )
    picky = exactly(cel=(f"device.attributes['{DRIVER}'].index == 1",))
    assert why(some, claim(picky)) == [
        f"g0 on edge-1: request selector does not match: device.attributes['{DRIVER}'].index == 1",
        "g1 on edge-1: in use by another claim",
        "g2 on edge-1: taint k=v:NoSchedule is not tolerated",
    ]


def test_an_amount_that_is_not_given_is_told_with_those_that_are() -> None:
    capacity = msgspec.convert(
        {
            "memory": {
                "value": "8Gi",
                "requestPolicy": {"default": "1Gi", "validValues": ["1Gi", "2Gi"]},
            },
        },
        dict[str, DeviceCapacity],
    )
    small = allocator(slice_(card("g0", capacity=capacity)))
    assert why(small, claim(exactly(amounts={"memory": "3Gi"}))) == [
        "g0 on edge-1: 3Gi of memory is not an amount that it gives (one of 1Gi, 2Gi)"
    ]
    assert why(small, claim(exactly(amounts={"cores": "3"}))) == [
        "g0 on edge-1: it has no capacity 'cores'"
    ]


def test_how_many_devices_could_be_had_is_told() -> None:
    two = allocator(slice_(whole("g0"), whole("g1")))
    assert why(two, claim(exactly(count=3)))[0] == (
        "claim ns/c, request gpu: 3 devices are needed, 2 can be had at once"
    )


def test_a_constraint_is_told() -> None:
    pair = allocator(slice_(whole("g0"), whole("g1", index=1)))
    constraint = DeviceConstraint(match_attribute=f"{DRIVER}/index")
    told = why(pair, claim(exactly(count=2), constraints=(constraint,)))
    assert f"g1 on edge-1: matchAttribute {DRIVER}/index would not hold" in told


def test_only_requests_that_never_got_their_devices_are_told() -> None:
    one = allocator(slice_(whole("g0")))
    reasons = one.allocate(NODE, [claim(exactly("first"), exactly("second"))])
    assert isinstance(reasons, Refused)
    assert {reason.request for reason in reasons.why} == {"second"}
    assert str(reasons.why[0]) == "g0 on edge-1: taken for another request of the same pod"


def test_a_node_without_devices_is_told() -> None:
    assert why(allocator(), claim(exactly())) == [
        "node edge-1: no driver offers devices there (no ResourceSlice reaches it)",
        "claim ns/c, request gpu: there is no device to choose from",
    ]


def test_pools_that_can_not_be_used_are_told() -> None:
    broken = allocator(
        slice_(whole("g0"), name="a", pool="p", count=2),
        slice_(whole("g0"), name="b", pool="p", count=2),
        slice_(whole("g0"), pool="q", count=2),
    )
    assert why(broken, claim(exactly()))[:2] == [
        f"pool p of driver {DRIVER}: invalid, all of it is passed over: duplicate device name g0",
        f"pool q of driver {DRIVER}: not all its ResourceSlices are there; it is being updated",
    ]


def test_what_is_left_of_each_device() -> None:
    slices = (slice_(card("g0"), whole("g1"), card("g2")),)
    held = (
        holder("g0", "s1", memory="10Gi", cores="20"),
        holder("g0", "s2", memory="1Gi", cores="20"),
        holder("g1"),
    )
    free = {device.id.device: device for device in allocator(*slices, holders=held).free()}
    left = {name: str(room.left) for name, room in free["g0"].capacity.items()}
    assert left == {"memory": "11764Mi", "cores": "60"}
    assert not free["g0"].full
    assert not free["g0"].whole
    assert free["g1"].full
    assert free["g2"].whole


def test_asking_twice_changes_nothing() -> None:
    asked = allocator(slice_(whole("g0"), whole("g1")))
    assert devices(asked, claim(exactly())) == devices(asked, claim(exactly())) == ["g0"]


def test_a_search_without_end_is_given_up() -> None:
    endless = allocator(
        slice_(*(whole(f"g{index}", index) for index in range(30))), step_limit=5_000
    )
    distinct = DeviceConstraint(match_attribute=f"{DRIVER}/index")
    requests = [exactly(f"r{number}", count=3) for number in range(3)]
    with pytest.raises(AllocationFailed, match="gave up after looking at devices 5000 times"):
        endless.allocate(
            NODE,
            [
                claim(*requests, exactly("last", cel=("false",))),
                claim(exactly(), name="d", constraints=(distinct,)),
            ],
        )


def test_many_claims_need_no_deep_stack() -> None:
    names = [f"g{index}" for index in range(1_200)]
    slices = [
        slice_(*map(whole, names[start : start + 100]), name=f"s{start:04}", count=12)
        for start in range(0, 1_200, 100)
    ]
    claims = [claim(exactly(count=30), name=f"c{number}") for number in range(40)]
    big = allocator(*slices, step_limit=1_000_000)
    assert devices(big, *claims) == names


def test_alternatives_name_the_chosen_one() -> None:
    request = DeviceRequest(
        name="gpu",
        first_available=(
            DeviceSubRequest(name="two", device_class_name="gpu", count=2),
            DeviceSubRequest(name="one", device_class_name="gpu"),
        ),
    )
    found = allocator(slice_(whole("g0"))).allocate(NODE, [claim(request)])
    assert isinstance(found, Allocated)
    assert found.results[0].devices.results[0].request == "gpu/one"
    assert found.results[0].devices.config[0].requests == ("gpu/one",)


class TestReleases:
    """What was different, or will be."""

    def test_1_35_does_not_count_capacity(self) -> None:
        old = allocator(slice_(card("g0")), behaviour=KUBERNETES_1_35)
        found = old.allocate(NODE, [claim(exactly())])
        assert isinstance(found, Allocated)
        assert found.results[0].devices.results[0].share_id is None

    def test_1_35_needs_the_gate_for_amounts(self) -> None:
        old = allocator(slice_(card("g0")), behaviour=KUBERNETES_1_35)
        with pytest.raises(AllocationFailed, match="the DRAConsumableCapacity feature is disabled"):
            old.allocate(NODE, [claim(exactly(amounts={"memory": "1Gi"}))])

    def test_1_34_allocates_from_incomplete_pools(self) -> None:
        incomplete = slice_(whole("g0"), count=2)
        asked = claim(exactly())
        assert devices(allocator(incomplete, behaviour=KUBERNETES_1_34), asked) == ["g0"]
        refused = allocator(incomplete).allocate(NODE, [asked])
        assert isinstance(refused, Refused)
        assert refused.reason == CANNOT_ALLOCATE

    def test_1_34_stops_at_invalid_pools(self) -> None:
        twice = (slice_(whole("g0"), name="a", count=2), slice_(whole("g0"), name="b", count=2))
        with pytest.raises(AllocationFailed, match="pool edge-1 is invalid: duplicate device"):
            allocator(*twice, behaviour=KUBERNETES_1_34).allocate(NODE, [claim(exactly())])

    def test_1_34_does_not_see_equal_attributes(self) -> None:
        constraint = DeviceConstraint(distinct_attribute=f"{DRIVER}/index")
        asked = claim(exactly("a"), exactly("b"), constraints=(constraint,))
        same = slice_(whole("g0"), whole("g1"))
        assert devices(allocator(same, behaviour=KUBERNETES_1_34), asked) == ["g0", "g1"]
        assert isinstance(allocator(same).allocate(NODE, [asked]), Refused)

    def test_1_37_names_the_device_in_errors(self) -> None:
        new = allocator(slice_(whole("g0")), behaviour=KUBERNETES_1_37)
        picky = exactly(cel=(f"device.attributes['{DRIVER}'].x == 1",))
        with pytest.raises(AllocationFailed, match=f"on device {DRIVER}/edge-1/g0: no such key: x"):
            new.allocate(NODE, [claim(picky)])

    def test_1_37_clears_requests_of_configuration_for_all(self) -> None:
        asked = [claim(exactly())]
        new = allocator(slice_(whole("g0")), behaviour=KUBERNETES_1_37).allocate(NODE, asked)
        assert isinstance(new, Allocated)
        assert new.results[0].devices.config[0].requests == ()
