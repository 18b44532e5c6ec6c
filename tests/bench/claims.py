"""Claims that are allocated by hand, for measuring the agent without a scheduler."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casaba.kube import RESOURCE_CLAIMS, KubeClient, load_config

DRIVER = "hami-core-gpu.project-hami.io"
NAMESPACE = "default"

_CLAIMS = RESOURCE_CLAIMS.decoded_as(dict)


@dataclass(frozen=True)
class WrittenClaim:
    """A claim on the API server."""

    name: str
    uid: str


def _spec() -> dict[str, Any]:
    exactly = {
        "deviceClassName": DRIVER,
        "capacity": {"requests": {"cores": "0", "memory": "1Mi"}},
    }
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def _status(node: str) -> dict[str, Any]:
    result = {
        "request": "gpu",
        "driver": DRIVER,
        "pool": node,
        "device": "hami-gpu-0",
        "shareID": str(uuid.uuid4()),
        "consumedCapacity": {"cores": "0", "memory": "1Mi"},
    }
    return {"allocation": {"devices": {"results": [result]}}}


async def _write(client: KubeClient, name: str, node: str) -> WrittenClaim:
    body = {"metadata": {"name": name}, "spec": _spec()}
    created = await client.create(_CLAIMS, body, namespace=NAMESPACE)
    await client.patch(
        _CLAIMS, name, {"status": _status(node)}, namespace=NAMESPACE, subresource="status"
    )
    return WrittenClaim(name, created["metadata"]["uid"])


async def write_claims(kubeconfig: Path, node: str, names: Sequence[str]) -> list[WrittenClaim]:
    """Create claims and allocate each to the node's first card."""
    async with KubeClient(load_config(kubeconfig)) as client:
        return [await _write(client, name, node) for name in names]


async def delete_claims(kubeconfig: Path, claims: Sequence[WrittenClaim]) -> None:
    """Delete what write_claims made."""
    async with KubeClient(load_config(kubeconfig)) as client, asyncio.TaskGroup() as group:
        for claim in claims:
            group.create_task(client.delete(_CLAIMS, claim.name, namespace=NAMESPACE))
