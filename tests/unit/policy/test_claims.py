"""From the API server's claim to what the driver serves."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from casaba.errors import PrepareRefused
from casaba.model.claim import AllocatedClaim
from casaba.model.slice_parameters import CorePolicy, SliceParameters
from casaba.policy.claims import allocated_claim
from casaba.wire.kubernetes import ResourceClaim
from tests.unit.values import CLAIM_UID, GIB

DRIVER = "hami-core-gpu.project-hami.io"


def result(**changes: Any) -> dict[str, Any]:
    return {
        "request": "gpu",
        "driver": DRIVER,
        "pool": "edge-gpu-a10",
        "device": "hami-gpu-0",
        "shareID": "3c0f1a52-0000-0000-0000-000000000000",
        "consumedCapacity": {"cores": "50", "memory": "10Gi"},
    } | changes


def read(
    *results: dict[str, Any], uid: str = CLAIM_UID, config: Sequence[dict[str, Any]] = ()
) -> AllocatedClaim:
    devices = {"results": list(results), "config": list(config)}
    claim = {
        "metadata": {"namespace": "default", "name": "claim", "uid": uid},
        "status": {"allocation": {"devices": devices}} if results else {},
    }
    return allocated_claim(msgspec.convert(claim, ResourceClaim), CLAIM_UID)


def entry(
    *requests: str, source: str = "FromClaim", driver: str = DRIVER, **fields: Any
) -> dict[str, Any]:
    parameters = {"apiVersion": "casaba.dev/v1alpha1", "kind": "SliceParameters"} | fields
    opaque = {"driver": driver, "parameters": parameters}
    return {"source": source, "requests": list(requests), "opaque": opaque}


def test_the_documents_claim() -> None:
    (share,) = read(result()).shares
    assert (share.memory_bytes, share.cores_percent) == (10 * GIB, 50)


def test_other_drivers_devices_are_theirs() -> None:
    other = result(driver="other.example", consumedCapacity={})
    assert len(read(other, result()).shares) == 1


def test_a_subrequest_belongs_to_its_request() -> None:
    assert read(result(request="gpu/small")).shares[0].request == "gpu"


@pytest.mark.parametrize(
    ("results", "text"),
    [
        ([], "not allocated"),
        ([result(driver="other.example")], "no device of driver"),
        ([result(consumedCapacity={"cores": "50"})], "'memory'.*DRAConsumableCapacity"),
        ([result(consumedCapacity={"memory": "1Gi"})], "'cores'.*DRAConsumableCapacity"),
        ([result(consumedCapacity={"cores": "x", "memory": "1Gi"})], "'x' is not a quantity"),
        ([result(consumedCapacity={"cores": "-1", "memory": "1Gi"})], "negative cores"),
        ([result(adminAccess=True)], "adminAccess"),
        ([result(request="/etc")], "not a DNS label"),
    ],
)
def test_what_can_not_be_served_is_refused(results: list[dict[str, Any]], text: str | None) -> None:
    with pytest.raises(PrepareRefused, match=text):
        read(*results)


def test_another_claim_of_the_same_name_is_refused() -> None:
    with pytest.raises(PrepareRefused, match="the pod's own was deleted"):
        read(result(), uid="99999999-2222-3333-4444-555555555555")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ((), SliceParameters()),
        ((entry(weight=3),), SliceParameters(weight=3)),
        ((entry("gpu", weight=3),), SliceParameters(weight=3)),
        ((entry("gpu/small", weight=3),), SliceParameters(weight=3)),
        ((entry("gpu/large", weight=3),), SliceParameters()),
        ((entry("other", weight=3),), SliceParameters()),
        ((entry(driver="other.example", weight="many"),), SliceParameters()),
        (({"source": "FromClaim"},), SliceParameters()),
        (
            (
                entry(source="FromClass", weight=3, corePolicy="force"),
                entry("gpu", weight=4),
                entry("gpu", priority=0),
            ),
            SliceParameters(weight=4, core_policy=CorePolicy.FORCE, priority=0),
        ),
    ],
)
def test_the_parameters_of_a_request(
    config: tuple[dict[str, Any], ...], expected: SliceParameters
) -> None:
    (share,) = read(result(request="gpu/small"), config=config).shares
    assert share.parameters == expected


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (entry(source="FromClass", weight=0), "the class's config for driver .*: weight: 0 is"),
        (entry("gpu", priority="low"), "the claim's config for driver .*: priority: 'low' is"),
        (entry(kind="GpuConfig"), "kind: 'GpuConfig'"),
        (entry(apiVersion="resource.nvidia.com/v1beta1", kind="GpuConfig"), "leave the entry out"),
        ({"source": "FromClaim", "opaque": {"driver": DRIVER}}, "parameters: nothing"),
    ],
)
def test_wrong_parameters_are_refused_by_field(config: dict[str, Any], text: str) -> None:
    with pytest.raises(PrepareRefused, match=text):
        read(result(), config=(config,))
