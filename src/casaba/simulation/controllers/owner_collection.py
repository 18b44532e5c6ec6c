"""Deletes objects whose owners are gone, and lets owners go when their dependents have."""

from collections.abc import Iterable
from functools import partial
from typing import Any, cast

from casaba.aiokit.work_queue import WorkQueue
from casaba.kube import Conflict, Deleted, KubeClient, NotFound, Propagation, Resource
from casaba.simulation.controllers.ownership import (
    FOREGROUND,
    ORPHAN,
    Item,
    Owned,
    Owner,
    OwnerGraph,
    plan_collection,
)
from casaba.simulation.workloads.following import Change, Source
from casaba.simulation.workloads.writing import OVERTAKEN


class OwnerCollector:
    """Follows all the given kinds; owners of other kinds are taken to be there for ever."""

    def __init__(self, client: KubeClient, kinds: Iterable[Resource[Any]]) -> None:
        self._client = client
        resources = tuple(kind.decoded_as(Owned) for kind in kinds)
        self._graph = OwnerGraph(resources)
        self._queue: WorkQueue[str] = WorkQueue(overtaken=OVERTAKEN)
        self.sources = tuple(Source(client, resource) for resource in resources)
        for source in self.sources:
            source.listen(partial(self._note, source.resource))

    async def run(self) -> None:
        """Work for ever, once everything is known."""
        for source in self.sources:
            await source.synced.wait()
        await self._queue.serve(self._look_at, workers=4)

    def _note(self, resource: Resource[Owned], change: Change[Owned]) -> None:
        item = Item(resource, change.object.metadata)
        if isinstance(change, Deleted):
            self._graph.remove(item.uid)
        else:
            self._graph.put(item)
            if item.is_leaving or item.metadata.owner_references:
                self._queue.add(item.uid)
        if isinstance(change, Deleted) or item.waits_for_dependents:
            for dependent in self._graph.dependents(item.uid):
                self._queue.add(dependent.uid)
        for owner in item.metadata.owner_references:
            self._queue.add(owner.uid)

    async def _look_at(self, uid: str) -> None:
        item = self._graph.item(uid)
        if item is None:
            return
        try:
            if item.is_leaving:
                await self._let_go(item)
            else:
                await self._collect(item)
        except NotFound:
            return

    async def _let_go(self, item: Item) -> None:
        """Take our finalizers from an object that leaves, when its dependents allow it."""
        if ORPHAN in item.metadata.finalizers:
            for dependent in self._graph.dependents(item.uid):
                await self._disown(dependent, (item.uid,))
            await self._without_finalizer(item, ORPHAN)
        elif item.waits_for_dependents and not self._graph.is_blocked(item.uid):
            await self._without_finalizer(item, FOREGROUND)

    async def _collect(self, item: Item) -> None:
        owners = item.metadata.owner_references
        absent = [owner.uid for owner in owners if await self._is_absent(item, owner)]
        plan = plan_collection(self._graph, item, absent)
        if plan.disown:
            await self._disown(item, plan.disown)
        elif plan.delete:
            await self._delete(item, cast("Propagation", plan.delete))

    async def _is_absent(self, item: Item, owner: Owner) -> bool:
        """Only the server knows: an owner that we have not heard of may be new."""
        if self._graph.is_there(item, owner):
            return False
        place = self._graph.place_of(item, owner)
        if place is None:
            return False
        resource, key = place
        try:
            found = await self._client.get(resource, key.name, namespace=key.namespace or None)
        except NotFound:
            return True
        return bool(found.metadata.uid != owner.uid)

    async def _delete(self, item: Item, propagation: Propagation) -> None:
        """Only as it was decided about: its owners may have changed."""
        meta = item.metadata
        await self._client.delete(
            item.resource,
            meta.name,
            namespace=meta.namespace or None,
            uid=meta.uid,
            resource_version=meta.resource_version,
            propagation=propagation,
        )

    async def _disown(self, item: Item, owners: Iterable[str]) -> None:
        gone = [{"$patch": "delete", "uid": uid} for uid in owners]
        await self._patch(item, {"ownerReferences": gone}, strategic=True)

    async def _without_finalizer(self, item: Item, finalizer: str) -> None:
        others = [entry for entry in item.metadata.finalizers if entry != finalizer]
        try:
            await self._patch(
                item, {"finalizers": others}, resource_version=item.metadata.resource_version
            )
        except Conflict:  # the watch brings the newer one here
            self._queue.add_after(item.uid, 0.1)

    async def _patch(self, item: Item, metadata: dict[str, Any], **options: Any) -> None:
        meta = item.metadata
        await self._client.patch(
            item.resource,
            meta.name,
            {"metadata": metadata},
            namespace=meta.namespace or None,
            uid=meta.uid,
            **options,
        )
