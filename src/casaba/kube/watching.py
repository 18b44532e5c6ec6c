"""Follow a resource for ever: what the server holds now, and every change of it.

    watch from nothing ──► initial events ──► bookmark "these are all" ──► events … ──► end
      ▲        │ not known to the server                                    ▲            │
      │        └──► list ──► watch from the list's version ─────────────────┤            │
      │                                                                     └────────────┤
      └── 410 Gone ◄───────────────────────────── watch again from the last version ◄────┘

Any other failure: wait, then go on from where we were.
Sources: Kubernetes API concepts, "Efficient detection of changes", "Watch bookmarks" and
"Streaming lists" (KEP-3157).
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import msgspec

from casaba.aiokit import Backoff
from casaba.kube.cache import Added, Deleted, Modified, Named, ObjectCache
from casaba.kube.client import KubeClient
from casaba.kube.decoding import ObjectDecoder, decoded
from casaba.kube.errors import (
    Gone,
    Invalid,
    KubeError,
    Refused,
    ServerError,
    Undecodable,
    refusal,
)
from casaba.kube.indexes import IndexFunction
from casaba.kube.open_watch import InitialEvents, OpenWatch
from casaba.kube.resources import ObjectKey, Resource
from casaba.wire.kubernetes import Bookmark, ObjectMeta, Status, WatchedObject, WatchEvent
from casaba.wire.watch_stream import CHANGES, BrokenStream, events_of

T = TypeVar("T")

log = logging.getLogger(__name__)

WATCH_TIMEOUT_S = (290, 600)
"""Each watch asks to be ended after a time between these, so that many do not end at once."""

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 30.0


@dataclass(frozen=True, slots=True)
class Synced:
    """A complete list has been taken over; its changes came before this."""

    resource_version: str


InformerEvent = Added[T] | Modified[T] | Deleted[T] | Synced


class _NoStreamedList(KubeError):
    """The server has not ended its initial events."""


_STREAMS_NO_LISTS = (Invalid, ServerError, Undecodable, _NoStreamedList)
"""Answers to a streamed list after which a plain one is asked for."""


class Informer(Generic[T]):
    """A cache of a resource that follows the server, and the stream of its changes.

    `async with Informer(client, PODS) as pods: async for event in pods: …`. It never ends by
    itself and never raises KubeError: every failure is logged and tried again. `objects` is
    already in the state after the events that are about to be delivered.
    `indexes` names functions that tell the values under which `by_index` finds an object.
    If cancelled while waiting for an event: nothing is lost, iteration can go on.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, IndexFunction[T]] | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._selection: dict[str, Any] = {
            "namespace": namespace,
            "label_selector": label_selector,
            "field_selector": field_selector,
        }
        self._asked = f"watch {resource.collection_path(namespace)}"
        self._cache: ObjectCache[T] = ObjectCache(indexes)
        self._decoder = ObjectDecoder(resource, self._asked)
        self._events: deque[InformerEvent[T]] = deque()
        self._backoff = backoff or Backoff(first_s=FIRST_RETRY_S, limit_s=LAST_RETRY_S)
        self._version: str | None = None
        self._watch: OpenWatch[T] | None = None
        self._server_streams_lists = True
        self._resume_at_s = 0.0
        self.failure: KubeError | None = None
        """Why there is no contact now; None while all is well."""

    @property
    def objects(self) -> Mapping[ObjectKey, T]:
        """A live view of the cache."""
        return self._cache.objects

    @property
    def resource_version(self) -> str | None:
        """The version that the cache has reached; None before the first list and after a Gone."""
        return self._version

    def by_index(self, name: str, value: str) -> tuple[T, ...]:
        """The objects with a value in an index; raises KeyError if there is no such index."""
        return self._cache.by_index(name, value)

    def take_ready(self) -> tuple[InformerEvent[T], ...]:
        """The events that iteration would deliver without waiting; they are delivered by this."""
        ready = tuple(self._events)
        self._events.clear()
        return ready

    async def __aenter__(self) -> "Informer[T]":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the connection; iterating again would open a new one."""
        if self._watch:
            self._watch.stream.close()
            self._watch = None

    def __aiter__(self) -> "Informer[T]":
        return self

    async def __anext__(self) -> InformerEvent[T]:
        while not self._events:
            try:
                await self._step()
            except KubeError as error:
                self._recover(error)
        return self._events.popleft()

    async def _step(self) -> None:
        if (delay_s := self._resume_at_s - time.monotonic()) > 0:
            await asyncio.sleep(delay_s)
        if self._watch:
            await self._read(self._watch)
        elif self._version is None and not self._server_streams_lists:
            await self._list()
        else:
            await self._open(self._version)

    async def _list(self) -> None:
        listed = await self._client.list(self._resource.decoded_as(msgspec.Raw), **self._selection)
        self._take_over(self._decoder.several(listed.items), listed.resource_version)
        self.failure = None

    async def _open(self, version: str | None) -> None:
        stream = await self._client.open_watch(
            self._resource,
            resource_version=version,
            timeout_s=random.randint(*WATCH_TIMEOUT_S),
            **self._selection,
        )
        self._watch = OpenWatch(stream, InitialEvents() if version is None else None)
        self.failure = None

    async def _read(self, watch: OpenWatch[T]) -> None:
        try:
            async with asyncio.timeout(watch.patience_s):
                chunk = await watch.stream.read()
        except TimeoutError:
            raise _NoStreamedList(f"{self._asked}: the server never ends its list") from None
        if not chunk:
            self._reopen(watch)
            return
        try:
            lines = watch.lines.complete(chunk)
            watch.heard(news=bool(lines))
            self._take_lines(watch, lines)
        except BrokenStream as error:
            raise Undecodable(f"{self._asked}: {error}") from error

    def _take_lines(self, watch: OpenWatch[T], lines: bytes) -> None:
        if (changes := self._decoder.changes(lines)) is not None:
            self._take_changes(watch, changes)
        else:
            for event in events_of(lines):
                self._take(watch, event)
        if lines:
            self._backoff.reset()

    def _take_changes(self, watch: OpenWatch[T], changes: list[WatchedObject[T]]) -> None:
        if watch.initial is not None:
            for change in changes:
                self._change(watch, change.type, _metadata(change.object), change.object)
        elif changes:
            self._events += self._cache.take(changes)
            self._version = _metadata(changes[-1].object).resource_version or self._version

    def _reopen(self, watch: OpenWatch[T]) -> None:
        """After a clean end: at once, unless the server ends every watch at once."""
        self.close()
        if watch.initial:
            self._server_streams_lists = False
        if watch.was_silent_too_long:
            self._version = None
        if watch.worked:
            self._backoff.reset()
        else:
            self._wait(self._backoff.next_delay_s())

    def _recover(self, error: KubeError) -> None:
        in_stream = self._watch is not None
        self.close()
        if self._version is None and self._server_streams_lists:
            self._server_streams_lists = not (in_stream or isinstance(error, _STREAMS_NO_LISTS))
            if not self._server_streams_lists and isinstance(error, Invalid | _NoStreamedList):
                return  # a server that only lacks this is not in trouble
        self.failure = error
        if isinstance(error, Gone | Invalid) or (in_stream and isinstance(error, Refused)):
            self._version = None
        delay_s = self._backoff.next_delay_s()
        if isinstance(error, Refused) and error.retry_after_s:
            delay_s = max(delay_s, error.retry_after_s)
        log.warning(
            "kube.watch_interrupted",
            extra={
                "error": str(error),
                "retry_in_s": round(delay_s, 2),
                "relist": not self._version,
            },
        )
        self._wait(delay_s)

    def _wait(self, delay_s: float) -> None:
        """Let the next step wait; a caller that gives up waiting for events does not cut it."""
        self._resume_at_s = time.monotonic() + delay_s

    def _take(self, watch: OpenWatch[T], event: WatchEvent) -> None:
        match event.type:
            case "ERROR":
                raise refusal(self._asked, decoded(event.object, Status, self._asked))
            case "BOOKMARK":
                self._take_bookmark(watch, decoded(event.object, Bookmark, self._asked))
            case change if change in CHANGES:
                identity, object_ = (
                    (self._decoder.identity(event.object), None)
                    if change == "DELETED"
                    else self._decoder.one(event.object)
                )
                self._change(watch, change, identity, object_)

    def _take_bookmark(self, watch: OpenWatch[T], bookmark: Bookmark) -> None:
        version = bookmark.metadata.resource_version or self._version
        if watch.initial is None:
            self._version = version
        elif bookmark.ends_initial_events and version:
            self._take_over(watch.initial.complete(), version)
            watch.initial = None
        else:
            raise _NoStreamedList(f"{self._asked}: a bookmark came before the list's end")

    def _change(self, watch: OpenWatch[T], change: str, identity: Named, object_: T | None) -> None:
        """An object changed; None: it is not understood, or gone."""
        gone = change == "DELETED"
        if watch.initial is not None:
            if gone:
                watch.initial.remove(identity)
            else:
                watch.initial.put(identity, object_)
            return
        if gone:
            self._events += self._cache.remove(identity)
        elif object_ is not None:
            self._events += self._cache.put(identity, object_)
        self._version = identity.resource_version or self._version

    def _take_over(self, items: Iterable[tuple[Named, T | None]], version: str) -> None:
        self._events.extend(self._cache.replace(items))
        self._events.append(Synced(version))
        self._version = version


def _metadata(object_: Any) -> ObjectMeta:
    """Of a form that a ChangeDecoder knows."""
    return cast("ObjectMeta", object_.metadata)
