"""The pods of this node: a worker for each, as the API server tells of them."""

import asyncio
import logging
from asyncio import TaskGroup
from collections.abc import Iterator

from casaba.errors import CasabaError
from casaba.kube import PODS, Added, Deleted, Informer, Modified, Synced
from casaba.simulation.kubelet.claim_rules import Object
from casaba.simulation.kubelet.node_services import NodeServices
from casaba.simulation.kubelet.pod_worker import PodWorker

log = logging.getLogger(__name__)

_PODS = PODS.decoded_as(dict)


class Pods:
    """Starts and informs the workers."""

    def __init__(self, node: NodeServices) -> None:
        self._node = node
        self._workers: dict[str, PodWorker] = {}
        self._synced = asyncio.Event()

    def __iter__(self) -> Iterator[PodWorker]:
        return iter(tuple(self._workers.values()))

    def find(self, namespace: str, name: str) -> PodWorker | None:
        """The newest pod of a name."""
        found = None
        for worker in self:
            metadata = worker.pod["metadata"]
            if (metadata["namespace"], metadata["name"]) == (namespace, name):
                found = worker
        return found

    def note_health(self) -> None:
        """The health of some devices has changed."""
        for worker in self:
            worker.note_change()

    async def run(self) -> None:
        """Never returns. If cancelled: all processes of all pods have been killed."""
        selector = f"spec.nodeName={self._node.settings.node_name}"
        async with TaskGroup() as group:
            group.create_task(self._reconcile())
            async with Informer(self._node.client, _PODS, field_selector=selector) as informer:
                async for event in informer:
                    match event:
                        case Added() | Modified():
                            self._take(event.object, group)
                        case Deleted():
                            self._drop(event.object)
                        case Synced():
                            self._synced.set()

    def _take(self, pod: Object, group: TaskGroup) -> None:
        uid = pod["metadata"]["uid"]
        if worker := self._workers.get(uid):
            worker.update(pod)
        else:
            self._workers[uid] = PodWorker(pod, self._node)
            group.create_task(self._run(self._workers[uid]))

    def _drop(self, pod: Object) -> None:
        if worker := self._workers.get(pod["metadata"]["uid"]):
            worker.vanish()

    async def _run(self, worker: PodWorker) -> None:
        """A pod that this kubelet can't cope with must not take the others along."""
        metadata = worker.pod["metadata"]
        try:
            await worker.run()
        except Exception:
            log.exception("pod.worker_failed", extra={"pod": metadata["name"]})
        finally:
            self._workers.pop(metadata["uid"], None)

    async def _reconcile(self) -> None:
        """Claims of pods that ended while nobody looked are unprepared, in the end."""
        await self._synced.wait()
        while True:
            active = [worker.pod["metadata"]["uid"] for worker in self]
            try:
                await self._node.claims.unprepare_all_but(active)
            except CasabaError as error:
                log.warning("claims.not_unprepared", extra={"reason": str(error)})
            await asyncio.sleep(self._node.settings.reconcile_s)
