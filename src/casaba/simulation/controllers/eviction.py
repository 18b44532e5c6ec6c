"""Pods that a NoExecute taint of their node drives away (taint-eviction-controller)."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from casaba.aiokit.work_queue import WorkQueue
from casaba.kube import Deleted, EventRecorder, KubeClient, ObjectKey
from casaba.simulation.controllers.removal import evict
from casaba.simulation.workloads.following import Change, Source
from casaba.simulation.workloads.objects import Node, Pod, Taint, Toleration
from casaba.simulation.workloads.references import about_pod
from casaba.simulation.workloads.times import parsed
from casaba.simulation.workloads.tolerations import is_tolerated, tolerates
from casaba.simulation.workloads.writing import OVERTAKEN

_CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


_LONGEST_S = 10 * 365 * 86_400
"""Longer tolerations are for ever: dates have an end."""


def stays_until(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], now: datetime
) -> datetime | None:
    """When a pod has to leave, None if it may stay; now, if a taint is not tolerated at all.

    Unlike the real controller, which counts from when it saw the taint, this counts from the
    taint's own time, so that a restart changes nothing.
    """
    evicting = [taint for taint in taints if taint.effect == "NoExecute"]
    tolerations = tuple(tolerations)
    if any(not is_tolerated(taint, tolerations) for taint in evicting):
        return now
    ends = [
        _added(taint, now) + timedelta(seconds=max(0, seconds))
        for taint in evicting
        for toleration in tolerations
        if tolerates(toleration, taint)
        and (seconds := toleration.toleration_seconds) is not None
        and seconds <= _LONGEST_S
    ]
    return min(ends, default=None)


def _added(taint: Taint, now: datetime) -> datetime:
    try:
        return parsed(taint.time_added or "")
    except ValueError:
        return now


class TaintEviction:
    """Deletes pods when their time on a tainted node is over."""

    def __init__(
        self,
        client: KubeClient,
        events: EventRecorder,
        *,
        pods: Source[Pod],
        nodes: Source[Node],
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._events = events
        self._pods = pods
        self._nodes = nodes
        self._now = now
        self._queue: WorkQueue[ObjectKey] = WorkQueue(overtaken=OVERTAKEN)
        pods.listen(self._note_pod)
        nodes.listen(self._note_node)

    async def run(self) -> None:
        """Work for ever."""
        await self._queue.serve(self._look_at)

    def _note_pod(self, change: Change[Pod]) -> None:
        if not isinstance(change, Deleted) and change.object.spec.node_name:
            self._queue.add(change.key)

    def _note_node(self, change: Change[Node]) -> None:
        for key, pod in self._pods.objects.items():
            if pod.spec.node_name == change.key.name:
                self._queue.add(key)

    async def _look_at(self, key: ObjectKey) -> float | None:
        pod = self._pods.objects.get(key)
        if pod is None or pod.is_finished or pod.metadata.deletion_timestamp:
            return None
        node = self._nodes.objects.get(ObjectKey("", pod.spec.node_name))
        now = self._now()
        until = stays_until(node.spec.taints if node else (), pod.spec.tolerations, now)
        if until is None:
            return None
        if until > now:
            return (until - now).total_seconds()
        message = f"Marking for deletion Pod {key.namespace}/{key.name}"
        self._events.record(about_pod(pod), reason="TaintManagerEviction", message=message)
        await evict(self._client, pod, _CONDITION)
        return None
