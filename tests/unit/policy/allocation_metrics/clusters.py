"""Slices, claims and pods in few words."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from casaba.model.gpu import Gpu
from casaba.model.ids import GpuUuid, NodeName
from casaba.policy.slices import slice_spec
from casaba.wire.kubernetes import Pod, ResourceClaim, ResourceSlice
from tests.unit.values import A10

DRIVER = "hami-core-gpu.project-hami.io"
SHARE_ID = "3c0f1a52-0000-0000-0000-000000000000"


def gpu(minor: int) -> Gpu:
    """A card like the A10, with an UUID of its own."""
    return dataclasses.replace(A10, minor=minor, uuid=GpuUuid(f"GPU-{minor:08x}"))


def slice_of(node: str, *gpus: Gpu, generation: int = 1, **pool: object) -> ResourceSlice:
    """A node's slice."""
    spec = slice_spec(NodeName(node), gpus, generation)
    spec["pool"] |= pool
    name = f"{node}-{generation}"
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def result(
    node: str,
    minor: int = 0,
    *,
    memory: str = "10Gi",
    cores: str = "50",
    request: str = "gpu",
    **other: object,
) -> dict[str, Any]:
    """One allocation result."""
    return {
        "request": request,
        "driver": DRIVER,
        "pool": node,
        "device": f"hami-gpu-{minor}",
        "shareID": SHARE_ID,
        "consumedCapacity": {"memory": memory, "cores": cores},
        **other,
    }


def claim(
    name: str, *results: dict[str, Any], pods: Iterable[str] = (), namespace: str = "team-a"
) -> ResourceClaim:
    """A claim of our class; allocated if there are results, reserved for pods."""
    status: dict[str, Any] = {}
    if results:
        status["allocation"] = {"devices": {"results": list(results)}}
    status["reservedFor"] = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
    requests = [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
            "spec": {"devices": {"requests": requests}},
            "status": status,
        },
        ResourceClaim,
    )


def pod(
    name: str,
    *containers: tuple[str, ...],
    claims: dict[str, str] | None = None,
    made: dict[str, str] | None = None,
    init: Iterable[tuple[str, ...]] = (),
    namespace: str = "team-a",
    phase: str = "Pending",
) -> Pod:
    """A pod; each container names its uses as `entry` or `entry/request`.

    `claims` are named by the pod itself, and those of `made` come from a template.
    """

    def uses(several: Iterable[tuple[str, ...]]) -> list[dict[str, Any]]:
        return [
            {
                "name": f"c{index}",
                "resources": {
                    "claims": [
                        dict(zip(("name", "request"), use.split("/"), strict=False))
                        for use in container
                    ]
                },
            }
            for index, container in enumerate(several)
        ]

    entries = [{"name": entry, "resourceClaimName": name} for entry, name in (claims or {}).items()]
    statuses = [{"name": entry, "resourceClaimName": name} for entry, name in (made or {}).items()]
    entries += [{"name": entry, "resourceClaimTemplateName": "t"} for entry in made or ()]
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
            "spec": {
                "containers": uses(containers),
                "initContainers": uses(init),
                "resourceClaims": entries,
            },
            "status": {"phase": phase, "resourceClaimStatuses": statuses},
        },
        Pod,
    )


def find(*pods: Pod) -> Callable[[str, str], Pod | None]:
    """As the account asks for pods."""
    known = {(pod.metadata.namespace, pod.metadata.name): pod for pod in pods}
    return lambda namespace, name: known.get((namespace, name))
