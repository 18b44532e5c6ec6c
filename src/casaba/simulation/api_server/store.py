"""The objects, their one version counter, and the recent past. In memory and without awaiting.

Every write makes one new version, as etcd's revisions do; a version's whole state can be had
again until the changes since then are forgotten.
"""

from collections.abc import Callable, Iterable, Sequence

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import already_exists, conflict, expired, not_found
from casaba.simulation.api_server.watch_log import Change, ChangeLog, Key, Stored, stored

FIRST_VERSION = 1000
"""Well above 1, so that nobody takes versions for counts."""

MODIFIED_SINCE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)

Wake = Callable[[], None]


class _Collection:
    """The objects of one resource."""

    def __init__(self, *, log_limit: int, version: int) -> None:
        self.objects: dict[Key, Stored] = {}
        self.log = ChangeLog(limit=log_limit, compacted=version)
        self.listeners: set[Wake] = set()


class Store:
    """All objects of the cluster. What it gives out is shared and must not be changed."""

    def __init__(self, *, log_limit: int, first_version: int = FIRST_VERSION) -> None:
        self._log_limit = log_limit
        self._compacted = first_version
        self._collections: dict[str, _Collection] = {}
        self.version = first_version

    def get(self, info: ResourceInfo, namespace: str, name: str) -> Stored:
        """One object; raises ApiError 404."""
        found = self._of(info).objects.get(Key(namespace, name))
        if found is None:
            raise not_found(info, name)
        return found

    def find(self, info: ResourceInfo, namespace: str, name: str) -> Stored | None:
        """One object, None if it is not there."""
        return self._of(info).objects.get(Key(namespace, name))

    def all(self, info: ResourceInfo) -> Iterable[Stored]:
        """All objects of a resource, in no order."""
        return self._of(info).objects.values()

    def as_of(self, info: ResourceInfo, version: int) -> Iterable[Stored]:
        """All objects as they were at a version; raises ApiError 410 if that is forgotten."""
        past = dict(self._of(info).objects)
        for change in reversed(self.changes_after(info, version)):
            if change.before is None:
                del past[change.now.key]
            else:
                past[change.now.key] = change.before
        return past.values()

    def changes_after(self, info: ResourceInfo, version: int) -> Sequence[Change]:
        """What happened after a version, oldest first; raises ApiError 410."""
        log = self._of(info).log
        if version < log.compacted:
            raise expired(f"too old resource version: {version} ({log.compacted})")
        return log.after(version)

    def create(self, info: ResourceInfo, object_: Object) -> Stored:
        """Add an object; raises ApiError 409 if its name is taken."""
        new = stored(object_, self.version + 1)
        if new.key in self._of(info).objects:
            raise already_exists(info, new.key.name)
        self._write(info, Change("ADDED", new, None))
        return new

    def replace(self, info: ResourceInfo, object_: Object, *, of: Stored) -> Stored:
        """Write a new state of `of`; one that changes nothing makes no version.

        Raises ApiError 409 if it is not the latest any more, 404 if it is gone.
        """
        self._must_be_latest(info, of)
        if object_ == of.object:
            return of
        new = stored(object_, self.version + 1)
        self._write(info, Change("MODIFIED", new, of))
        return new

    def remove(self, info: ResourceInfo, of: Stored) -> Stored:
        """Delete an object: its last state, at the version of the deletion; raises as replace."""
        self._must_be_latest(info, of)
        gone = stored(of.object, self.version + 1)
        self._write(info, Change("DELETED", gone, of))
        return gone

    def compact(self) -> None:
        """Forget the past: only the state of now can be asked for."""
        self._compacted = self.version
        for collection in self._collections.values():
            collection.log.compact(self.version)

    def listen(self, info: ResourceInfo, wake: Wake) -> Callable[[], None]:
        """Call `wake` after each change of a resource, until the returned function is called."""
        listeners = self._of(info).listeners
        listeners.add(wake)
        return lambda: listeners.discard(wake)

    def _must_be_latest(self, info: ResourceInfo, of: Stored) -> None:
        latest = self.get(info, *of.key)
        if latest.version != of.version:
            raise conflict(info, of.key.name, MODIFIED_SINCE)

    def _write(self, info: ResourceInfo, change: Change) -> None:
        collection = self._of(info)
        self.version = change.version
        if change.kind == "DELETED":
            del collection.objects[change.now.key]
        else:
            collection.objects[change.now.key] = change.now
        collection.log.append(change)
        for wake in tuple(collection.listeners):
            wake()

    def _of(self, info: ResourceInfo) -> _Collection:
        collection = self._collections.get(info.qualified)
        if collection is None:
            # Nothing happened to it so far, so there is nothing that its log lacks.
            collection = _Collection(log_limit=self._log_limit, version=self._compacted)
            self._collections[info.qualified] = collection
        return collection
