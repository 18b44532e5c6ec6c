"""Marks nodes whose kubelet is silent, and their pods (node-lifecycle-controller)."""

import logging
from collections.abc import Callable
from typing import Any

from casaba.aiokit.work_queue import WorkQueue
from casaba.kube import Deleted, EventRecorder, KubeClient, NotFound, ObjectKey
from casaba.simulation.controllers.node_health import (
    Heartbeat,
    first_heartbeat,
    has_wanted_taints,
    is_ready,
    unknown_conditions,
    wanted_taints,
    with_wanted_taints,
)
from casaba.simulation.workloads.following import Change, Source
from casaba.simulation.workloads.objects import NODES, Node, Pod
from casaba.simulation.workloads.references import about_node
from casaba.simulation.workloads.times import utc_now
from casaba.simulation.workloads.writing import OVERTAKEN, patch_pod_status
from casaba.wire.kubernetes import Lease

log = logging.getLogger(__name__)

LEASES_NAMESPACE = "kube-node-lease"

_RAW_NODES = NODES.decoded_as(dict)


class NodeLifecycle:
    """kube-controller-manager's node-lifecycle-controller; evictions are elsewhere."""

    def __init__(
        self,
        client: KubeClient,
        events: EventRecorder,
        *,
        nodes: Source[Node],
        leases: Source[Lease],
        pods: Source[Pod],
        grace_s: float,
        now_s: Callable[[], float],
    ) -> None:
        self._client = client
        self._events = events
        self._nodes = nodes
        self._leases = leases
        self._pods = pods
        self._grace_s = grace_s
        self._now_s = now_s
        self._heartbeats: dict[str, Heartbeat] = {}
        """By UID of the node."""
        self._queue: WorkQueue[str] = WorkQueue(overtaken=OVERTAKEN)
        nodes.listen(self._note_node)
        leases.listen(self._note_lease)

    async def run(self) -> None:
        """Work for ever."""
        await self._queue.serve(self.look_at)

    async def look_at(self, name: str) -> float | None:
        """One node; in how many seconds it has to be looked at again."""
        node = self._nodes.objects.get(ObjectKey("", name))
        if node is None:
            return None
        left_s = self._seconds_left(node)
        if left_s <= 0 and (conditions := unknown_conditions(node, utc_now())):
            await self._mark_unknown(node, conditions)
            return None
        if not has_wanted_taints(node):
            await self._taint(node)
        if not is_ready(node):
            await self._mark_pods(name)
        return max(left_s, 0.0) or None

    def _seconds_left(self, node: Node) -> float:
        lease = self._leases.objects.get(ObjectKey(LEASES_NAMESPACE, node.metadata.name))
        now_s = self._now_s()
        known = self._heartbeats.get(node.metadata.uid)
        heartbeat = known.next(node, lease, now_s) if known else first_heartbeat(node, lease, now_s)
        self._heartbeats[node.metadata.uid] = heartbeat
        return heartbeat.seen_at_s + self._grace_s - now_s

    def _note_node(self, change: Change[Node]) -> None:
        if isinstance(change, Deleted):
            self._heartbeats.pop(change.object.metadata.uid, None)
        else:
            self._queue.add(change.key.name)

    def _note_lease(self, change: Change[Lease]) -> None:
        if change.key.namespace == LEASES_NAMESPACE:
            self._queue.add(change.key.name)

    async def _mark_unknown(self, node: Node, conditions: list[dict[str, Any]]) -> None:
        name = node.metadata.name
        await self._client.patch(
            NODES,
            name,
            {"status": {"conditions": conditions}},
            subresource="status",
            strategic=True,
            uid=node.metadata.uid,
        )
        message = f"Node {name} status is now: NodeNotReady"
        self._events.record(about_node(node), reason="NodeNotReady", message=message)
        log.warning("node.silent", extra={"node": name, "grace_s": self._grace_s})

    async def _taint(self, node: Node) -> None:
        """On the node as it is on the server: other people's taints must not be lost."""
        name = node.metadata.name
        read = await self._client.get(_RAW_NODES, name)
        taints = read.get("spec", {}).get("taints") or []
        wanted = with_wanted_taints(taints, wanted_taints(node), utc_now())
        await self._client.patch(
            _RAW_NODES,
            name,
            {"spec": {"taints": wanted or None}},
            uid=node.metadata.uid,
            resource_version=read["metadata"]["resourceVersion"],
        )

    async def _mark_pods(self, node: str) -> None:
        for pod in list(self._pods.objects.values()):
            ready = [c for c in pod.status.conditions if c.type == "Ready" and c.status == "True"]
            if pod.spec.node_name != node or not ready:
                continue
            condition = {"type": "Ready", "status": "False", "lastTransitionTime": utc_now()}
            try:
                await patch_pod_status(self._client, pod, {"conditions": [condition]})
            except NotFound:
                continue
