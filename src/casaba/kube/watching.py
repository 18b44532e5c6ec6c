"""List and watch for ever: what the server holds now, and every change of it.

    list ──► watch ──► events … ──► end ──► watch again from the last version
      ▲                  │
      └── 410 Gone ◄─────┘       any other failure: wait, then go on from the last version

Sources: Kubernetes API concepts, "Efficient detection of changes" and "Watch bookmarks".
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

import msgspec

from casaba.aiokit import Backoff
from casaba.kube.cache import Added, Deleted, Modified, ObjectCache
from casaba.kube.client import KubeClient
from casaba.kube.decoding import decoded
from casaba.kube.errors import Gone, Invalid, KubeError, Refused, Undecodable, refusal
from casaba.kube.resources import ObjectKey, Resource
from casaba.kube.transport import ByteStream
from casaba.wire.kubernetes import Bookmark, Identified, Identity, Status, WatchEvent
from casaba.wire.watch_stream import BrokenStream, WatchStream

T = TypeVar("T")

log = logging.getLogger(__name__)

WATCH_TIMEOUT_S = (290, 600)
"""Each watch asks to be ended after a time between these, so that many do not end at once."""

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 30.0

SETTLED_S = 5.0
"""A watch that lasted this long did work, even if it brought nothing."""

BOOKMARK_OVERDUE_S = 150.0
"""A server sends a bookmark about each minute. One that kept silent for this long may be behind
the version asked for, as after a restored backup, and would stay silent until it has caught up."""


@dataclass(frozen=True, slots=True)
class Synced:
    """A complete list has been taken over; its changes came before this."""

    resource_version: str


InformerEvent = Added[T] | Modified[T] | Deleted[T] | Synced


class _Watch:
    """One open watch, and whether it has brought anything."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self.lines = WatchStream()
        self.opened_at_s = time.monotonic()
        self.brought_news = False

    @property
    def worked(self) -> bool:
        return self.brought_news or self._lasted_s() >= SETTLED_S

    @property
    def was_silent_too_long(self) -> bool:
        return not self.brought_news and self._lasted_s() >= BOOKMARK_OVERDUE_S

    def _lasted_s(self) -> float:
        return time.monotonic() - self.opened_at_s


class Informer(Generic[T]):
    """A cache of a resource that follows the server, and the stream of its changes.

    `async with Informer(client, PODS) as pods: async for event in pods: …`. It never ends by
    itself and never raises KubeError: every failure is logged and tried again. `objects` is
    already in the state after the events that are about to be delivered.
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
        self._cache: ObjectCache[T] = ObjectCache()
        self._decoder = msgspec.json.Decoder(resource.form)
        self._events: deque[InformerEvent[T]] = deque()
        self._backoff = backoff or Backoff(first_s=FIRST_RETRY_S, limit_s=LAST_RETRY_S)
        self._version: str | None = None
        self._watch: _Watch | None = None
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

    async def __aenter__(self) -> "Informer[T]":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
                await self._recover(error)
        return self._events.popleft()

    async def _step(self) -> None:
        if self._version is None:
            await self._list()
        elif self._watch is None:
            await self._open(self._version)
        else:
            await self._read(self._watch)

    async def _list(self) -> None:
        listed = await self._client.list(self._resource.decoded_as(msgspec.Raw), **self._selection)
        self._events.extend(self._cache.replace(self._understood(listed.items)))
        self._events.append(Synced(listed.resource_version))
        self._version = listed.resource_version
        self.failure = None

    async def _open(self, version: str) -> None:
        stream = await self._client.open_watch(
            self._resource,
            resource_version=version,
            timeout_s=random.randint(*WATCH_TIMEOUT_S),
            **self._selection,
        )
        self._watch = _Watch(stream)
        self.failure = None

    async def _read(self, watch: _Watch) -> None:
        chunk = await watch.stream.read()
        if not chunk:
            await self._reopen(watch)
            return
        try:
            events = watch.lines.feed(chunk)
        except BrokenStream as error:
            raise Undecodable(f"{self._asked}: {error}") from error
        for event in events:
            self._take(event)
            watch.brought_news = True
            self._backoff.reset()

    async def _reopen(self, watch: _Watch) -> None:
        """After a clean end: at once, unless the server ends every watch at once."""
        self.close()
        if watch.was_silent_too_long:
            self._version = None
        if watch.worked:
            self._backoff.reset()
        else:
            await asyncio.sleep(self._backoff.next_delay_s())

    async def _recover(self, error: KubeError) -> None:
        in_stream = self._watch is not None
        self.close()
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
        await asyncio.sleep(delay_s)

    def _take(self, event: WatchEvent) -> None:
        match event.type:
            case "ERROR":
                raise refusal(self._asked, decoded(event.object, Status, self._asked))
            case "BOOKMARK":
                bookmark = decoded(event.object, Bookmark, self._asked)
                self._version = bookmark.metadata.resource_version or self._version
            case "ADDED" | "MODIFIED" | "DELETED":
                self._change(event)

    def _change(self, event: WatchEvent) -> None:
        identity = decoded(event.object, Identified, self._asked).metadata
        if event.type == "DELETED":
            self._events.extend(self._cache.remove(identity))
        elif (object_ := self._object(identity, event.object)) is not None:
            self._events.extend(self._cache.put(identity, object_))
        self._version = identity.resource_version or self._version

    def _understood(self, items: tuple[msgspec.Raw, ...]) -> Iterator[tuple[Identity, T | None]]:
        for item in items:
            identity = decoded(item, Identified, self._asked).metadata
            yield identity, self._object(identity, item)

    def _object(self, identity: Identity, raw: msgspec.Raw) -> T | None:
        """One object that this version can't read must not stop the others: None, and a line."""
        try:
            return self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            log.error(
                "kube.object_not_understood",
                extra={
                    "resource": self._resource.plural,
                    "object": f"{identity.namespace}/{identity.name}",
                    "error": str(error),
                },
            )
            return None
