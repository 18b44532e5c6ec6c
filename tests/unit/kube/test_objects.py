"""Kubernetes objects as the API server writes them become what we work with."""

import json
from pathlib import Path
from typing import Any

import msgspec

from casaba.kube import RESOURCE_CLAIMS, RESOURCE_SLICES
from casaba.wire.kubernetes import (
    CapacityRange,
    DeviceAttribute,
    DeviceRequestAllocationResult,
    Pod,
    ResourceClaim,
    ResourceSlice,
)

SCENARIO = Path(__file__).parents[3] / "examples" / "scenario"


def test_the_slice_of_the_scenario() -> None:
    slice_ = msgspec.json.decode((SCENARIO / "resourceslice.json").read_bytes(), type=ResourceSlice)
    (device,) = slice_.spec.devices
    assert slice_.spec.pool.resource_slice_count == 1
    assert device.allow_multiple_allocations
    assert device.attributes["minor"] == DeviceAttribute(int_=0)
    assert device.attributes["driverVersion"] == DeviceAttribute(version="580.126.9")
    memory = device.capacity["memory"]
    assert memory.value == "23028Mi"
    assert memory.request_policy
    assert memory.request_policy.valid_range == CapacityRange(min="1Mi", max="23028Mi", step="1Mi")


def claim(status: dict[str, Any]) -> ResourceClaim:
    document = {
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ns", "uid": "u", "creationTimestamp": None},
        "spec": {"devices": {"requests": None}},
        "status": status,
    }
    return msgspec.json.decode(json.dumps(document), type=ResourceClaim)


def test_an_allocated_claim() -> None:
    result = {
        "request": "gpu",
        "driver": "d",
        "pool": "p",
        "device": "hami-gpu-0",
        "shareID": "s",
        "consumedCapacity": {"cores": "50", "memory": "10Gi"},
        "unknownToUs": {},
    }
    config = {"source": "FromClaim", "opaque": {"driver": "d", "parameters": {"kind": "X"}}}
    consumer = {"resource": "pods", "name": "pod", "uid": "pu"}
    status = claim(
        {
            "allocation": {"devices": {"results": [result], "config": [config]}},
            "reservedFor": [consumer],
        }
    ).status
    assert status.allocation
    assert status.allocation.devices.results == (
        DeviceRequestAllocationResult(
            request="gpu",
            driver="d",
            pool="p",
            device="hami-gpu-0",
            share_id="s",
            consumed_capacity={"cores": "50", "memory": "10Gi"},
        ),
    )
    (entry,) = status.allocation.devices.config
    assert entry.opaque
    assert entry.opaque.parameters == {"kind": "X"}
    assert status.reserved_for[0].uid == "pu"


def test_a_claim_that_is_not_allocated() -> None:
    assert claim({}).status.allocation is None


def test_a_pod_and_its_claims() -> None:
    container = {"name": "c", "resources": {"claims": [{"name": "gpu", "request": "r"}]}}
    document = {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {
            "nodeName": "n",
            "containers": [container],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "c", "containerID": "containerd://1", "state": {}}],
            "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}],
        },
    }
    pod = msgspec.json.decode(json.dumps(document), type=Pod)
    assert pod.spec.containers
    assert pod.spec.containers[0].resources.claims[0].request == "r"
    assert pod.status.container_statuses[0].container_id == "containerd://1"
    assert pod.status.resource_claim_statuses[0].resource_claim_name == "p-gpu"


def test_paths() -> None:
    assert RESOURCE_SLICES.path("s") == "/apis/resource.k8s.io/v1/resourceslices/s"
    assert RESOURCE_CLAIMS.collection_path() == "/apis/resource.k8s.io/v1/resourceclaims"
    assert RESOURCE_CLAIMS.path("c", "ns", "status") == (
        "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status"
    )
