"""What the server holds, as far as we were told, and what each news of it changes.

Pure: every method only changes the cache and returns the changes, in order.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, TypeVar

from msgspec import Struct

from casaba.kube.indexes import Indexes, IndexFunction
from casaba.kube.resources import ObjectKey
from casaba.wire.kubernetes import Identity, ObjectMeta, WatchedObject

T = TypeVar("T")


Named = Identity | ObjectMeta
"""The metadata of an object, in short or whole."""


# What was decoded from JSON can't form cycles: the collector is spared these.
class Added(Struct, Generic[T], frozen=True, gc=False):
    """An object appeared."""

    key: ObjectKey
    object: T


class Modified(Struct, Generic[T], frozen=True, gc=False):
    """An object changed."""

    key: ObjectKey
    object: T
    before: T


class Deleted(Struct, Generic[T], frozen=True, gc=False):
    """An object is gone; `object` is its last known state.

    When the deletion itself was missed, it is noticed by the object's absence from a later list.
    """

    key: ObjectKey
    object: T


Change = Added[T] | Modified[T] | Deleted[T]


_Seen = tuple[ObjectKey, str, str]
"""Key, UID and version. The key is here to be used again: events then make no new ones."""


class ObjectCache(Generic[T]):
    """The objects of one resource by namespace and name, with UID and version of each.

    One name with another UID is another object: the old one's deletion is reported first.
    """

    def __init__(self, indexes: Mapping[str, IndexFunction[T]] | None = None) -> None:
        self._objects: dict[ObjectKey, T] = {}
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._indexes = Indexes[T](indexes or {})
        self.objects: Mapping[ObjectKey, T] = MappingProxyType(self._objects)
        """A live view."""

    def by_index(self, name: str, value: str) -> tuple[T, ...]:
        """The objects with a value in an index; raises KeyError if there is no such index."""
        return tuple(self._objects[key] for key in self._indexes.keys(name, value))

    def replace(self, listed: Iterable[tuple[Named, T | None]]) -> list[Change[T]]:
        """Take over a complete list; what it lacks was deleted.

        An object of None is there, but not understood: what was known of it stays.
        """
        found = [(_key(identity), identity, object_) for identity, object_ in listed]
        here = {key for key, _, _ in found}
        gone = [key for key in self._objects if key not in here]
        changes: list[Change[T]] = [self._forget(key) for key in gone]
        for key, identity, object_ in found:
            seen = (key, identity.uid, identity.resource_version)
            if object_ is not None and self._seen.get(key) != seen:
                changes += self._store(key, identity, object_)
        return changes

    def take(self, changes: Iterable[WatchedObject[T]]) -> list[Change[T]]:
        """News of a watch in their order, as `put` and `remove` take them one by one."""
        news: list[Change[T]] = []
        for change in changes:
            # Only forms with whole metadata are watched so.
            identity = change.object.metadata  # type: ignore[attr-defined]
            if change.type == "DELETED":
                news += self.remove(identity)
            else:
                news += self.put(identity, change.object)
        return news

    def put(self, identity: Named, object_: T) -> Sequence[Change[T]]:
        """An object was added or modified; news older than what is known changes nothing."""
        known = self._seen.get((identity.namespace, identity.name))
        if known is None or known[1] != identity.uid:
            return self._store(_key(identity), identity, object_)
        if not _is_newer(identity.resource_version, known[2]):
            return ()
        return (self._modify(known[0], identity, object_),)

    def remove(self, identity: Named) -> Sequence[Change[T]]:
        """An object was deleted; nothing changes if it was not known, or is another by now."""
        known = self._seen.get((identity.namespace, identity.name))
        return (self._forget(known[0]),) if known and known[1] == identity.uid else ()

    def _store(self, key: ObjectKey, identity: Named, object_: T) -> list[Change[T]]:
        known = self._seen.get(key)
        if known and known[1] == identity.uid:
            return [self._modify(known[0], identity, object_)]
        changes: list[Change[T]] = [self._forget(key)] if known else []
        self._indexes.change(key, None, object_)
        self._objects[key] = object_
        self._seen[key] = (key, identity.uid, identity.resource_version)
        return [*changes, Added(key, object_)]

    def _modify(self, key: ObjectKey, identity: Named, object_: T) -> Modified[T]:
        before = self._objects[key]
        self._indexes.change(key, before, object_)
        self._objects[key] = object_
        self._seen[key] = (key, identity.uid, identity.resource_version)
        return Modified(key, object_, before)

    def _forget(self, key: ObjectKey) -> Deleted[T]:
        self._indexes.change(key, self._objects[key], None)
        del self._seen[key]
        return Deleted(key, self._objects.pop(key))


def _key(identity: Named) -> ObjectKey:
    return ObjectKey(identity.namespace, identity.name)


def _is_newer(version: str, known: str) -> bool:
    """Versions that are numbers have an order (KEP-5504); of others only a difference shows."""
    if version.isdecimal() and known.isdecimal():
        return int(version) > int(known)
    return version != known
