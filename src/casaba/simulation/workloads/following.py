"""One watch of a resource for all who want its news."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from casaba.kube import (
    Added,
    Deleted,
    Informer,
    KubeClient,
    Modified,
    ObjectKey,
    Resource,
    Synced,
)

T = TypeVar("T")

Change = Added[T] | Modified[T] | Deleted[T]


class Source(Generic[T]):
    """A resource as the watch has told of it, and its listeners; they must not raise."""

    def __init__(self, client: KubeClient, resource: Resource[T]) -> None:
        self.resource = resource
        self._informer = Informer(client, resource)
        self._listeners: list[Callable[[Change[T]], None]] = []
        self.synced = asyncio.Event()
        """Set once all that was there at the start has been told."""

    @property
    def objects(self) -> Mapping[ObjectKey, T]:
        """A live view."""
        return self._informer.objects

    def listen(self, listener: Callable[[Change[T]], None]) -> None:
        """Tell every change from now on, in order."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Follow the server, for ever."""
        async with self._informer:
            async for event in self._informer:
                if isinstance(event, Synced):
                    self.synced.set()
                    continue
                for listener in self._listeners:
                    listener(event)


async def all_synced(sources: Iterable[Source[Any]]) -> None:
    """Until each of them has told all that was there at the start."""
    for source in sources:
        await source.synced.wait()
