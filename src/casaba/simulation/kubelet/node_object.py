"""The Node object and its Lease, and what keeps them alive."""

import asyncio
import logging
import os
import platform
from collections.abc import Mapping
from typing import Any

from casaba.aiokit import Backoff
from casaba.kube import (
    LEASES,
    NODES,
    RESOURCE_SLICES,
    AlreadyExists,
    KubeClient,
    KubeError,
    NotFound,
)
from casaba.settings.simulation import SimulatedKubeletSettings
from casaba.simulation.kubelet.container_words import POD_IP
from casaba.simulation.kubelet.times import now, now_micro

log = logging.getLogger(__name__)

_NODES = NODES.decoded_as(dict)
_LEASES = LEASES.decoded_as(dict)

LEASE_NAMESPACE = "kube-node-lease"
ISOLATION_ANNOTATION = "casaba.dev/simulated-isolation"

WIPE_FIRST_RETRY_S = 1.0
WIPE_LAST_RETRY_S = 300.0
REGISTER_FIRST_RETRY_S = 0.2
REGISTER_LAST_RETRY_S = 7.0

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_CONDITIONS = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "is posting ready status"),
}


class NodeObject:
    """This node, as the cluster sees it."""

    def __init__(self, client: KubeClient, settings: SimulatedKubeletSettings) -> None:
        self._client = client
        self._settings = settings
        self._name = settings.node_name
        self._uid = ""

    async def register(self, port: int, isolation: str) -> None:
        """Create the Node or take over the one that is there; raises nothing, tries again."""
        backoff = Backoff(first_s=REGISTER_FIRST_RETRY_S, limit_s=REGISTER_LAST_RETRY_S)
        while True:
            try:
                await self._register(port, isolation)
            except KubeError as error:
                log.warning("node.not_registered", extra={"reason": str(error)})
                await asyncio.sleep(backoff.next_delay_s())
            else:
                return

    async def keep_alive(self) -> None:
        """Never returns: renews the Lease, and the conditions when somebody has changed them."""
        while True:
            try:
                await self._renew_lease()
                await self._mend_conditions()
            except KubeError as error:
                log.warning("node.heartbeat_lost", extra={"reason": str(error)})
            await asyncio.sleep(self._settings.lease_renewal_s)

    async def wipe_slices(self, driver: str = "") -> None:
        """Delete this node's ResourceSlices, of one driver or of all; tries until it is done."""
        selector = f"spec.nodeName={self._name}" + (f",spec.driver={driver}" if driver else "")
        backoff = Backoff(first_s=WIPE_FIRST_RETRY_S, limit_s=WIPE_LAST_RETRY_S)
        while True:
            try:
                await self._client.delete_collection(RESOURCE_SLICES, field_selector=selector)
            except KubeError as error:
                log.warning("slices.not_wiped", extra={"reason": str(error)})
                await asyncio.sleep(backoff.next_delay_s())
            else:
                log.info("slices.wiped", extra={"selector": selector})
                return

    async def _register(self, port: int, isolation: str) -> None:
        metadata = {
            "name": self._name,
            "labels": self._labels(),
            "annotations": {ISOLATION_ANNOTATION: isolation},
        }
        try:
            node = await self._client.create(_NODES, {"metadata": metadata, "spec": {}})
        except AlreadyExists:
            node = await self._client.patch(_NODES, self._name, {"metadata": metadata})
        self._uid = node["metadata"]["uid"]
        await self._patch_status(self._status(port, node))

    def _labels(self) -> dict[str, str]:
        architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
        return {
            "beta.kubernetes.io/arch": architecture,
            "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": architecture,
            "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": self._name,
            **self._settings.labels,
        }

    def _status(self, port: int, node: Mapping[str, Any]) -> dict[str, Any]:
        capacity = dict(self._settings.capacity)
        return {
            "addresses": [
                {"type": "InternalIP", "address": POD_IP},
                {"type": "Hostname", "address": self._name},
            ],
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": _conditions(node),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "nodeInfo": self._node_info(),
        }

    def _node_info(self) -> dict[str, str]:
        version = f"v{self._settings.version}.0+casaba.simulated"
        return {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "bootID": self._uid,
            "containerRuntimeVersion": "simulated://1",
            "kernelVersion": os.uname().release,
            "kubeProxyVersion": "",
            "kubeletVersion": version,
            "machineID": self._uid.replace("-", ""),
            "operatingSystem": "linux",
            "osImage": "casaba's simulated node",
            "systemUUID": self._uid,
        }

    async def _mend_conditions(self) -> None:
        """A node that was late is marked by others; a node that was deleted stays away."""
        try:
            node = await self._client.get(_NODES, self._name)
        except NotFound:
            log.error("node.deleted", extra={"node": self._name})
            return
        told = {one["type"]: one["status"] for one in node["status"].get("conditions") or ()}
        if any(told.get(kind) != status for kind, (status, _, _) in _CONDITIONS.items()):
            await self._patch_status({"conditions": _conditions(node)})

    async def _patch_status(self, status: Mapping[str, Any]) -> None:
        await self._client.patch(
            _NODES, self._name, {"status": status}, subresource="status", strategic=True
        )

    async def _renew_lease(self) -> None:
        spec = {
            "holderIdentity": self._name,
            "leaseDurationSeconds": self._settings.lease_duration_s,
            "renewTime": now_micro(),
        }
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._name, "uid": self._uid}
        try:
            await self._client.patch(_LEASES, self._name, {"spec": spec}, namespace=LEASE_NAMESPACE)
        except NotFound:
            metadata = {"name": self._name, "ownerReferences": [owner]}
            body = {"metadata": metadata, "spec": spec}
            await self._client.create(_LEASES, body, namespace=LEASE_NAMESPACE)


def _conditions(node: Mapping[str, Any]) -> list[dict[str, str]]:
    told = (node.get("status") or {}).get("conditions") or ()
    before = {one["type"]: one for one in told}
    moment = now()
    conditions = []
    for kind, (status, reason, message) in _CONDITIONS.items():
        known = before.get(kind, {})
        changed = known.get("status") != status
        since = moment if changed else known.get("lastTransitionTime", moment)
        conditions.append(
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": f"kubelet {message}",
                "lastHeartbeatTime": moment,
                "lastTransitionTime": since,
            }
        )
    return conditions
