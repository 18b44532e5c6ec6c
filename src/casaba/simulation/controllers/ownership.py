"""Who owns whom, and what follows when an owner goes (garbage-collector-controller). Pure.

Source: Kubernetes, "Garbage Collection" and "Owners and Dependents". An owner is the object of
that UID; an object of the same name with another UID is not it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from casaba.kube import ObjectKey, Resource
from casaba.wire.kubernetes import Wire

FOREGROUND = "foregroundDeletion"
"""Finalizer of an owner that goes after its dependents."""
ORPHAN = "orphan"
"""Finalizer of an owner that leaves its dependents behind."""


class Owner(Wire, frozen=True):
    """A reference to an owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    block_owner_deletion: bool = False


class OwnedMetadata(Wire, frozen=True):
    """The metadata that ownership lives by."""

    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[Owner, ...] = ()


class Owned(Wire, frozen=True):
    """Any object, reduced to that."""

    metadata: OwnedMetadata


@dataclass(frozen=True)
class Item:
    """An object in the graph."""

    resource: Resource[Any]
    metadata: OwnedMetadata

    @property
    def uid(self) -> str:
        """Identity of the object."""
        return self.metadata.uid

    @property
    def is_leaving(self) -> bool:
        """Whether it is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def waits_for_dependents(self) -> bool:
        """Whether it goes after its dependents."""
        return self.is_leaving and FOREGROUND in self.metadata.finalizers


class OwnerGraph:
    """All objects by UID, and the objects that each owns."""

    def __init__(self, resources: Iterable[Resource[Any]]) -> None:
        self._resources = {(resource.group, resource.kind): resource for resource in resources}
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, set[str]] = {}

    def put(self, item: Item) -> None:
        """An object came or changed."""
        self.remove(item.uid)
        self._items[item.uid] = item
        for owner in item.metadata.owner_references:
            self._dependents.setdefault(owner.uid, set()).add(item.uid)

    def remove(self, uid: str) -> None:
        """An object is gone; what it owned is still known as its own."""
        item = self._items.pop(uid, None)
        owners = {owner.uid for owner in item.metadata.owner_references} if item else set()
        for owner in owners:
            self._dependents[owner].discard(uid)
            if not self._dependents[owner]:
                del self._dependents[owner]

    def item(self, uid: str) -> Item | None:
        """An object, None if it is not there."""
        return self._items.get(uid)

    def dependents(self, uid: str) -> tuple[Item, ...]:
        """The objects that say they are owned by this one."""
        return tuple(self._items[found] for found in sorted(self._dependents.get(uid, ())))

    def is_blocked(self, uid: str) -> bool:
        """Whether a dependent has to go before its owner."""
        return any(
            owner.uid == uid and owner.block_owner_deletion
            for dependent in self.dependents(uid)
            for owner in dependent.metadata.owner_references
        )

    def place_of(self, item: Item, owner: Owner) -> tuple[Resource[Any], ObjectKey] | None:
        """Where the owner must be; None if that is a kind that we don't follow, or nowhere."""
        group = owner.api_version.rpartition("/")[0]
        resource = self._resources.get((group, owner.kind))
        if resource is None or (resource.namespaced and not item.metadata.namespace):
            return None
        namespace = item.metadata.namespace if resource.namespaced else ""
        return resource, ObjectKey(namespace, owner.name)

    def is_there(self, item: Item, owner: Owner) -> bool:
        """Whether the owner is known, at its place."""
        found, place = self._items.get(owner.uid), self.place_of(item, owner)
        if found is None or place is None:
            return False
        key = ObjectKey(found.metadata.namespace, found.metadata.name)
        return (found.resource.plural, key) == (place[0].plural, place[1])


@dataclass(frozen=True, kw_only=True)
class Collection:
    """What to do with an object that has owners."""

    disown: tuple[str, ...] = ()
    """UIDs of owners that are gone or going, while others stay."""
    delete: str | None = None
    """Foreground, Background or Orphan; None if it stays."""


def plan_collection(graph: OwnerGraph, item: Item, absent: Iterable[str]) -> Collection:
    """The plan; `absent` are the UIDs of owners of which the server said that they are gone."""
    owners = [owner.uid for owner in item.metadata.owner_references]
    gone = [uid for uid in owners if uid in set(absent)]
    going = [uid for uid in owners if (found := graph.item(uid)) and found.waits_for_dependents]
    if len(gone) + len(going) < len(owners):
        return Collection(disown=tuple(gone + going))
    if going and graph.dependents(item.uid):
        return Collection(delete="Foreground")
    return Collection(delete=_policy(item)) if owners else Collection()


def _policy(item: Item) -> str:
    """Somebody may have chosen before, by a finalizer."""
    if ORPHAN in item.metadata.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in item.metadata.finalizers else "Background"
