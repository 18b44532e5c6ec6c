"""From the API server's claim to what the driver serves."""

from typing import Any

import msgspec
import pytest

from casaba.errors import PrepareRefused
from casaba.model.claim import AllocatedClaim
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


def read(*results: dict[str, Any], uid: str = CLAIM_UID) -> AllocatedClaim:
    claim = {
        "metadata": {"namespace": "default", "name": "claim", "uid": uid},
        "status": {"allocation": {"devices": {"results": list(results)}}} if results else {},
    }
    return allocated_claim(msgspec.convert(claim, ResourceClaim), CLAIM_UID)


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
