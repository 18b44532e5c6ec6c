"""One informer for several consumers, each of which sees the whole story at its own pace."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from casaba.kube.cache import Added, Change, Deleted, Modified
from casaba.kube.resources import ObjectKey
from casaba.kube.watching import Informer, InformerEvent, Synced

T = TypeVar("T")

QUEUE_LIMIT = 10_000
"""Events that wait for one consumer before they are merged."""


class Subscription(Generic[T]):
    """The events for one consumer; `with shared.subscribe() as events: async for event in events`.

    It begins with the objects that there are, as Added, and Synced. A consumer that is slow gets
    fewer events: those that wait are merged, so that there are at most two for each object. An
    object that came and went meanwhile is then not told of.
    """

    def __init__(self, shared: "SharedInformer[T]", start: Iterable[InformerEvent[T]]) -> None:
        self._shared = shared
        self._events: list[InformerEvent[T]] = list(start)
        self._next = 0
        self._merge_at = max(QUEUE_LIMIT, 2 * len(self._events))
        self._news = asyncio.Event()

    def __enter__(self) -> "Subscription[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take no more events."""
        self._shared.unsubscribe(self)

    def put(self, events: Iterable[InformerEvent[T]]) -> None:
        """Events happened."""
        self._events.extend(events)
        if len(self._events) - self._next > self._merge_at:
            self._events, self._next = merged(self._events[self._next :]), 0
            self._merge_at = max(QUEUE_LIMIT, 2 * len(self._events))
        self._news.set()

    def __aiter__(self) -> "Subscription[T]":
        return self

    async def __anext__(self) -> InformerEvent[T]:
        """The next event. If cancelled: none is lost."""
        while self._next == len(self._events):
            self._events, self._next = [], 0
            self._news.clear()
            await self._news.wait()
        event = self._events[self._next]
        self._next += 1
        return event


class SharedInformer(Generic[T]):
    """Hands the events of one informer to many; `run` has to run meanwhile."""

    def __init__(self, informer: Informer[T]) -> None:
        self.informer = informer
        """Its cache and indexes are everybody's; only `run` may iterate over it."""
        self._subscriptions: list[Subscription[T]] = []
        self._synced: Synced | None = None

    @property
    def objects(self) -> Mapping[ObjectKey, T]:
        """A live view of the cache."""
        return self.informer.objects

    async def run(self) -> None:
        """Follow the server until cancelled."""
        async with self.informer:
            async for event in self.informer:
                self._tell((event, *self.informer.take_ready()))

    def subscribe(self) -> Subscription[T]:
        """All events from now on, after a start that is the state of now."""
        start: list[InformerEvent[T]] = [Added(key, it) for key, it in self.objects.items()]
        if self._synced:
            start.append(Synced(self.informer.resource_version or self._synced.resource_version))
        subscription = Subscription(self, start)
        self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription[T]) -> None:
        """Forget a subscription; nothing happens if it is not known."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    def _tell(self, events: tuple[InformerEvent[T], ...]) -> None:
        for event in events:
            if isinstance(event, Synced):
                self._synced = event
        for subscription in self._subscriptions:
            subscription.put(events)


def merged(events: Iterable[InformerEvent[T]]) -> list[InformerEvent[T]]:
    """The fewest events that lead from the same beginning to the same end."""
    by_key: dict[ObjectKey, list[Change[T]]] = {}
    synced: list[InformerEvent[T]] = []
    for event in events:
        if isinstance(event, Synced):
            synced = [event]
        else:
            _join(by_key.setdefault(event.key, []), event)
    return [change for changes in by_key.values() for change in changes] + synced


def _join(changes: list[Change[T]], event: Change[T]) -> None:
    match changes[-1] if changes else None, event:
        case Added(), Modified():
            changes[-1] = Added(event.key, event.object)
        case Modified(before=before), Modified():
            changes[-1] = Modified(event.key, event.object, before)
        case Added(), Deleted():
            changes.pop()
        case Modified(), Deleted():
            changes[-1] = event
        case _:
            changes.append(event)
