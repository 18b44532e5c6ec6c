"""The changes of one collection, in the order of their versions: what watches read. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo

_METADATA_FIELDS = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)

ChangeKind = Literal["ADDED", "MODIFIED", "DELETED"]


class Key(NamedTuple):
    """Where an object is; the namespace is empty for kinds without one."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Stored:
    """One object at one version, with its JSON, which is made once and sent many times."""

    key: Key
    version: int
    object: Object
    fields: bytes
    """JSON of all but kind and apiVersion, which items of lists lack."""


@dataclass(frozen=True, slots=True)
class Change:
    """One write; `before` is None if the object was not there."""

    kind: ChangeKind
    now: Stored
    """The new state; of a deleted object the last one, at the version of its deletion."""
    before: Stored | None
    lines: dict[ChangeKind, bytes] = field(default_factory=dict, compare=False)
    """The watch lines of this change that were asked for so far."""

    @property
    def version(self) -> int:
        """The version that this write made."""
        return self.now.version


def stored(object_: Object, version: int) -> Stored:
    """The object as of a version, which is written into it."""
    metadata = _in_order({**object_["metadata"], "resourceVersion": str(version)})
    object_ = {**object_, "metadata": metadata}
    fields = {key: value for key, value in object_.items() if key not in ("kind", "apiVersion")}
    key = Key(metadata.get("namespace", ""), metadata["name"])
    return Stored(key, version, object_, msgspec.json.encode(fields))


def _in_order(metadata: Object) -> Object:
    """The fields as the real server writes them, for people who read raw answers."""
    known = {field: metadata[field] for field in _METADATA_FIELDS if field in metadata}
    return known | metadata


def whole_json(info: ResourceInfo, found: Stored) -> bytes:
    """The object's JSON with its kind and apiVersion."""
    head = f'{{"kind":"{info.kind}","apiVersion":"{info.api_version}",'
    return head.encode() + found.fields[1:]


class ChangeLog:
    """The last changes; older ones are forgotten, and `compacted` says up to which version."""

    def __init__(self, *, limit: int, compacted: int) -> None:
        self._limit = limit
        self._changes: list[Change] = []
        self.compacted = compacted

    def append(self, change: Change) -> None:
        """Add the newest change. Forgets a tenth at once, so that it is cheap."""
        self._changes.append(change)
        if len(self._changes) > self._limit:
            self._forget(max(1, self._limit // 10))

    def compact(self, version: int) -> None:
        """Forget all; versions before `version` can't be asked for any more."""
        self._changes.clear()
        self.compacted = version

    def after(self, version: int) -> Sequence[Change]:
        """The changes after a version, which must not be compacted."""
        return self._changes[bisect_right(self._changes, version, key=_version) :]

    def _forget(self, count: int) -> None:
        self.compacted = self._changes[count - 1].version
        del self._changes[:count]


def _version(change: Change) -> int:
    return change.version
