"""Empties namespaces that are being deleted, then lets them go (namespace-controller)."""

import logging
from collections.abc import Sequence
from typing import Any

from casaba.aiokit.work_queue import WorkQueue
from casaba.kube import NAMESPACES, Conflict, Deleted, KubeClient, NotFound, ObjectKey, Resource
from casaba.simulation.workloads.following import Change, Source
from casaba.simulation.workloads.writing import OVERTAKEN

log = logging.getLogger(__name__)

FINALIZER = "kubernetes"
LOOK_AGAIN_S = 0.5
"""While pods take their time to end."""

Object = dict[str, Any]


def must_be_emptied(namespace: Object) -> bool:
    """Whether it is being deleted, and this controller has not let it go yet."""
    finalizers = namespace.get("spec", {}).get("finalizers") or ()
    return bool(namespace["metadata"].get("deletionTimestamp")) and FINALIZER in finalizers


def let_go(namespace: Object) -> Object:
    """The same without our finalizer."""
    spec = namespace.get("spec", {})
    others = [entry for entry in spec.get("finalizers") or () if entry != FINALIZER]
    return {**namespace, "spec": {**spec, "finalizers": others}}


class NamespaceController:
    """Deletes everything of the given kinds in a namespace, until nothing is left."""

    def __init__(
        self, client: KubeClient, *, namespaces: Source[Object], kinds: Sequence[Resource[Any]]
    ) -> None:
        self._client = client
        self._namespaces = namespaces
        self._kinds = tuple(kind.decoded_as(dict) for kind in kinds if kind.namespaced)
        self._queue: WorkQueue[str] = WorkQueue(overtaken=OVERTAKEN)
        namespaces.listen(self._note)

    async def run(self) -> None:
        """Work for ever."""
        await self._queue.serve(self._look_at, workers=2)

    def _note(self, change: Change[Object]) -> None:
        if not isinstance(change, Deleted) and must_be_emptied(change.object):
            self._queue.add(change.key.name)

    async def _look_at(self, name: str) -> float | None:
        namespace = self._namespaces.objects.get(ObjectKey("", name))
        if namespace is None or not must_be_emptied(namespace):
            return None
        if await self._is_something_left(name):
            return LOOK_AGAIN_S
        try:
            await self._client.update(NAMESPACES, name, let_go(namespace), subresource="finalize")
        except NotFound:
            return None
        except Conflict:  # the watch brings the newer one here
            return LOOK_AGAIN_S
        return None

    async def _is_something_left(self, namespace: str) -> bool:
        left = False
        for kind in self._kinds:
            if (await self._client.list(kind, namespace=namespace)).items:
                await self._client.delete_collection(kind, namespace=namespace)
                left = left or bool((await self._client.list(kind, namespace=namespace)).items)
        return left
