"""What the scheduler knows: the watched cluster, and its own decisions that are on their way."""

import asyncio
from typing import Any

from casaba.kube import (
    DEVICE_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Added,
    Deleted,
    KubeClient,
    Modified,
    ObjectKey,
)
from casaba.simulation.scheduler.assumed import AssumedClaims
from casaba.simulation.scheduler.decision import ClusterView
from casaba.simulation.scheduler.news import News
from casaba.simulation.scheduler.queue import SchedulingQueue
from casaba.simulation.workloads.claim_names import claim_names
from casaba.simulation.workloads.following import Change, Source, all_synced
from casaba.simulation.workloads.objects import NODES, PODS, Node, Pod
from casaba.wire.kubernetes import DeviceClass, ResourceClaim, ResourceSlice

SCHEDULER_NAME = "default-scheduler"


class SchedulerState:
    """Follows pods, nodes, claims, classes and slices, and tells the queue what it needs."""

    def __init__(self, client: KubeClient, queue: SchedulingQueue) -> None:
        self._queue = queue
        self._pods = Source(client, PODS)
        self._nodes = Source(client, NODES)
        self._claims = Source(client, RESOURCE_CLAIMS)
        self._classes = Source(client, DEVICE_CLASSES)
        self._slices = Source(client, RESOURCE_SLICES)
        self._pods.listen(self._note_pod)
        self._nodes.listen(self._note_node)
        self._claims.listen(self._note_claim)
        self._classes.listen(self._note_class)
        self._slices.listen(self._note_slice)
        self.claims = AssumedClaims(self._claims.objects)
        self.in_flight: dict[str, ResourceClaim] = {}
        """See ClusterView."""
        self.placed: dict[str, tuple[Pod, str]] = {}
        """Pods by UID that have a node, of which the watch has not told yet."""
        self.news = asyncio.Event()
        """Set whenever the queue may have something new."""

    async def run(self) -> None:
        """Follow everything, for ever."""
        async with asyncio.TaskGroup() as group:
            for source in self._sources:
                group.create_task(source.run())

    async def synced(self) -> None:
        """Until everything that was there at the start is known."""
        await all_synced(self._sources)

    @property
    def _sources(self) -> tuple[Source[Any], ...]:
        return (self._pods, self._nodes, self._claims, self._classes, self._slices)

    def pod(self, key: ObjectKey) -> Pod | None:
        """A pod as last seen; None if it is gone or has a node."""
        pod = self._pods.objects.get(key)
        return pod if pod and pod.metadata.uid not in self.placed and _needs_node(pod) else None

    def view(self) -> ClusterView:
        """All of it, for one decision."""
        return ClusterView(
            nodes={node.metadata.name: node for node in self._nodes.objects.values()},
            pods=self._pods_by_node(),
            claims=self.claims,
            in_flight=self.in_flight,
            slices=tuple(self._slices.objects.values()),
            classes={key.name: class_ for key, class_ in self._classes.objects.items()},
        )

    def _pods_by_node(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self._pods.objects.values():
            if pod.spec.node_name and not pod.is_finished:
                found.setdefault(pod.spec.node_name, []).append(pod)
        for pod, node in self.placed.values():
            found.setdefault(node, []).append(pod)
        return found

    def tell(self, news: News, pod: ObjectKey | None = None) -> None:
        """Tell the queue, and whoever waits for it."""
        self._queue.tell(news, pod)
        self.news.set()

    def _note_pod(self, change: Change[Pod]) -> None:
        pod, key = change.object, change.key
        if isinstance(change, Deleted) or not _needs_node(pod):
            self._queue.remove(key)
        if isinstance(change, Deleted) or pod.spec.node_name:
            self.placed.pop(pod.metadata.uid, None)
        if _left_its_room(change):
            self.tell(News.POD_GONE)
        if not isinstance(change, Deleted) and _needs_node(pod):
            self._queue.add(key)
            self.news.set()
            if isinstance(change, Modified) and _asks(pod) != _asks(change.before):
                self.tell(News.POD_CHANGED, key)

    def _note_node(self, change: Change[Node]) -> None:
        if isinstance(change, Added) or (
            isinstance(change, Modified) and _offers(change.object) != _offers(change.before)
        ):
            self.tell(News.NODE)

    def _note_claim(self, change: Change[ResourceClaim]) -> None:
        self.claims.watched(change.key)
        if isinstance(change, Deleted):
            return
        before = change.before.status if isinstance(change, Modified) else None
        after = change.object.status
        if before and before.allocation and not after.allocation:
            self.tell(News.CLAIM_FREED)
        elif before != after:
            for pod in self._users(change.key):
                self.tell(News.CLAIM, pod)

    def _users(self, claim: ObjectKey) -> list[ObjectKey]:
        """Pods without a node that mean this claim."""
        return [
            key
            for key, pod in self._pods.objects.items()
            if key.namespace == claim.namespace
            and _needs_node(pod)
            and claim.name in claim_names(pod)
        ]

    def _note_class(self, change: Change[DeviceClass]) -> None:
        if not isinstance(change, Deleted):
            self.tell(News.CLASS)

    def _note_slice(self, change: Change[ResourceSlice]) -> None:
        if not isinstance(change, Deleted):
            self.tell(News.SLICE)


def _needs_node(pod: Pod) -> bool:
    return not (
        pod.spec.node_name
        or pod.spec.scheduler_name != SCHEDULER_NAME
        or pod.spec.scheduling_gates
        or pod.metadata.deletion_timestamp
        or pod.is_finished
    )


def _left_its_room(change: Change[Pod]) -> bool:
    if not change.object.spec.node_name:
        return False
    if isinstance(change, Modified):
        return change.object.is_finished and not change.before.is_finished
    return isinstance(change, Deleted)


def _asks(pod: Pod) -> object:
    """What of a pod matters for its node; not what the scheduler itself writes."""
    return pod.spec, pod.metadata.labels, pod.status.resource_claim_statuses


def _offers(node: Node) -> object:
    """What of a node matters for pods; not its heartbeat."""
    return node.metadata.labels, node.spec, node.status.allocatable
