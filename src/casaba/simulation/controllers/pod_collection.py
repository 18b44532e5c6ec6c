"""Removes pods that no kubelet will ever finish (pod-garbage-collector-controller)."""

import enum

from casaba.aiokit.work_queue import WorkQueue
from casaba.kube import Added, Deleted, KubeClient, NotFound, ObjectKey
from casaba.simulation.controllers.node_health import is_ready
from casaba.simulation.controllers.removal import mark_failed_and_delete
from casaba.simulation.workloads.following import Change, Source
from casaba.simulation.workloads.objects import NODES, Node, Pod
from casaba.simulation.workloads.writing import OVERTAKEN

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

_ORPHANED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


class Fate(enum.Enum):
    """What is to become of a pod."""

    STAYS = enum.auto()
    GOES = enum.auto()
    GOES_IF_NODE_IS_GONE = enum.auto()


def fate(pod: Pod, node: Node | None) -> Fate:
    """Of a pod whose node, if it has one that is known, is `node`."""
    leaving = pod.metadata.deletion_timestamp is not None
    if not pod.spec.node_name:
        return Fate.GOES if leaving else Fate.STAYS
    if node is None:
        return Fate.GOES_IF_NODE_IS_GONE
    given_up = any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
    return Fate.GOES if leaving and given_up and not is_ready(node) else Fate.STAYS


class PodCollector:
    """Looks at pods when they or their nodes change, and at those without a node once more after
    `quarantine_s`: a node may be re-created."""

    def __init__(
        self, client: KubeClient, *, pods: Source[Pod], nodes: Source[Node], quarantine_s: float
    ) -> None:
        self._client = client
        self._pods = pods
        self._nodes = nodes
        self._quarantine_s = quarantine_s
        self._in_quarantine: set[str] = set()
        """Pods by UID whose node was missing when they were last looked at."""
        self._queue: WorkQueue[ObjectKey] = WorkQueue(overtaken=OVERTAKEN)
        pods.listen(self._note_pod)
        nodes.listen(self._note_node)

    async def run(self) -> None:
        """Work for ever."""
        await self._nodes.synced.wait()
        await self._queue.serve(self._look_at)

    def _note_pod(self, change: Change[Pod]) -> None:
        if isinstance(change, Deleted):
            self._in_quarantine.discard(change.object.metadata.uid)
        else:
            self._queue.add(change.key)

    def _note_node(self, change: Change[Node]) -> None:
        if isinstance(change, Added):
            return
        for key, pod in self._pods.objects.items():
            if pod.spec.node_name == change.key.name:
                self._queue.add(key)

    async def _look_at(self, key: ObjectKey) -> float | None:
        pod = self._pods.objects.get(key)
        if pod is None:
            return None
        node = self._nodes.objects.get(ObjectKey("", pod.spec.node_name))
        match fate(pod, node):
            case Fate.STAYS:
                self._in_quarantine.discard(pod.metadata.uid)
            case Fate.GOES:
                await mark_failed_and_delete(self._client, pod)
            case Fate.GOES_IF_NODE_IS_GONE:
                return await self._orphan(pod)
        return None

    async def _orphan(self, pod: Pod) -> float | None:
        if pod.metadata.uid not in self._in_quarantine:
            self._in_quarantine.add(pod.metadata.uid)
            return self._quarantine_s
        try:
            await self._client.get(NODES, pod.spec.node_name)
        except NotFound:
            await mark_failed_and_delete(self._client, pod, _ORPHANED)
        return None
