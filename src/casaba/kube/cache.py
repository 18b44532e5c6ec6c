"""What the server holds, as far as we were told, and what each news of it changes.

Pure: every method only changes the cache and returns the changes, in order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from casaba.kube.resources import ObjectKey
from casaba.wire.kubernetes import Identity

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Added(Generic[T]):
    """An object appeared."""

    key: ObjectKey
    object: T


@dataclass(frozen=True, slots=True)
class Modified(Generic[T]):
    """An object changed."""

    key: ObjectKey
    object: T
    before: T


@dataclass(frozen=True, slots=True)
class Deleted(Generic[T]):
    """An object is gone; `object` is its last known state.

    When the deletion itself was missed, it is noticed by the object's absence from a later list.
    """

    key: ObjectKey
    object: T


Change = Added[T] | Modified[T] | Deleted[T]


class _Seen(NamedTuple):
    uid: str
    version: str


class ObjectCache(Generic[T]):
    """The objects of one resource by namespace and name, with UID and version of each.

    One name with another UID is another object: the old one's deletion is reported first.
    """

    def __init__(self) -> None:
        self._objects: dict[ObjectKey, T] = {}
        self._seen: dict[ObjectKey, _Seen] = {}
        self.objects: Mapping[ObjectKey, T] = MappingProxyType(self._objects)
        """A live view."""

    def replace(self, listed: Iterable[tuple[Identity, T | None]]) -> list[Change[T]]:
        """Take over a complete list; what it lacks was deleted.

        An object of None is there, but not understood: what was known of it stays.
        """
        found = [(_key(identity), identity, object_) for identity, object_ in listed]
        here = {key for key, _, _ in found}
        gone = [key for key in self._objects if key not in here]
        changes: list[Change[T]] = [self._forget(key) for key in gone]
        for key, identity, object_ in found:
            if object_ is not None and self._seen.get(key) != _seen(identity):
                changes += self._store(key, _seen(identity), object_)
        return changes

    def put(self, identity: Identity, object_: T) -> list[Change[T]]:
        """An object was added or modified; news older than what is known changes nothing."""
        key, seen = _key(identity), _seen(identity)
        known = self._seen.get(key)
        if known and known.uid == seen.uid and not _is_newer(seen.version, known.version):
            return []
        return self._store(key, seen, object_)

    def remove(self, identity: Identity) -> list[Change[T]]:
        """An object was deleted; nothing changes if it was not known, or is another by now."""
        key = _key(identity)
        known = self._seen.get(key)
        return [self._forget(key)] if known and known.uid == identity.uid else []

    def _store(self, key: ObjectKey, seen: _Seen, object_: T) -> list[Change[T]]:
        known = self._seen.get(key)
        changes: list[Change[T]] = []
        if known and known.uid != seen.uid:
            changes.append(self._forget(key))
        changes.append(
            Modified(key, object_, self._objects[key])
            if key in self._objects
            else Added(key, object_)
        )
        self._objects[key], self._seen[key] = object_, seen
        return changes

    def _forget(self, key: ObjectKey) -> Deleted[T]:
        del self._seen[key]
        return Deleted(key, self._objects.pop(key))


def _key(identity: Identity) -> ObjectKey:
    return ObjectKey(identity.namespace, identity.name)


def _seen(identity: Identity) -> _Seen:
    return _Seen(identity.uid, identity.resource_version)


def _is_newer(version: str, known: str) -> bool:
    """Versions that are numbers have an order (KEP-5504); of others only a difference shows."""
    if version.isdecimal() and known.isdecimal():
        return int(version) > int(known)
    return version != known
