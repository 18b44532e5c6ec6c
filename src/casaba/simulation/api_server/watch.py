"""A watch: the state at its start if asked for, then every change that its selection sees.

A watch is a place in the store's log, not a queue of its own: one that reads too slowly falls
out of the log and gets 410, and costs no memory until then.
"""

import asyncio
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple

from casaba.simulation.api_server.list_options import (
    ListOptions,
    list_options,
    number_of,
    version_too_large,
)
from casaba.simulation.api_server.requests import ResourceRequest
from casaba.simulation.api_server.selection import selection
from casaba.simulation.api_server.statuses import ApiError
from casaba.simulation.api_server.store import Store
from casaba.simulation.api_server.watch_log import Change, ChangeKind, Stored


class WatchEvent(NamedTuple):
    """One event; `change` is None for those of the state at the start."""

    kind: ChangeKind
    found: Stored
    change: Change | None = None


class WatchFeed:
    """The events of one watch; `with` it while it is read. Raises ApiError for a wrong request."""

    def __init__(self, store: Store, request: ResourceRequest) -> None:
        self.options: ListOptions = list_options(request.query)
        self.resource = request.resource
        self._store = store
        self._chosen = selection(request)
        self.version = _start_version(self.options)
        """Everything up to this version has been told."""
        self._changed = asyncio.Event()
        self._stop_listening = store.listen(self.resource, self._changed.set)

    def __enter__(self) -> "WatchFeed":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop_listening()

    @property
    def tells_state(self) -> bool:
        """Whether the watch starts with the objects that are there."""
        if self.options.initial_events is not None:
            return self.options.initial_events
        return self.options.version in ("", "0")

    def state(self) -> list[WatchEvent]:
        """The objects at the start as added; the changes then go on from here."""
        self.version = self._store.version
        chosen = self._chosen.of(self._store.all(self.resource))
        return [WatchEvent("ADDED", found) for found in chosen]

    def start(self) -> list[WatchEvent]:
        """What a watch gets before it waits.

        Raises ApiError 410 if that is forgotten, 504 for a state that does not exist yet.
        """
        if self.options.initial_events and self.version > self._store.version:
            raise version_too_large(self.version, self._store.version)
        if self.tells_state:
            return self.state()
        if self.options.version in ("", "0"):
            self.version = self._store.version
        return self.take()

    def take(self) -> list[WatchEvent]:
        """The events since the last call; raises ApiError 410 if some are forgotten."""
        self._changed.clear()
        events = list(self._seen())
        # A version of the future is waited for; nothing before it is told.
        self.version = max(self.version, self._store.version)
        return events

    def wake(self) -> None:
        """Let `wait` return though nothing happened."""
        self._changed.set()

    async def wait(self) -> None:
        """Until `take` may have something."""
        await self._changed.wait()

    def _seen(self) -> Iterator[WatchEvent]:
        for change in self._store.changes_after(self.resource, self.version):
            if seen := self._chosen.seen(change):
                yield WatchEvent(*seen, change)


def _start_version(options: ListOptions) -> int:
    try:
        return number_of(options.version)
    except ValueError as error:
        # The real one has no better status for this either.
        raise ApiError(500, "", str(error)) from None
