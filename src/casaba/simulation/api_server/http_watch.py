"""A watch over HTTP: a JSON line per event, until its time is up or something cuts it."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from aiohttp import web

from casaba.simulation.api_server.faults import CutStream, Faults, LostEvents
from casaba.simulation.api_server.forms import Form, bookmark_line, event_line, line
from casaba.simulation.api_server.requests import ResourceRequest
from casaba.simulation.api_server.statuses import ApiError
from casaba.simulation.api_server.watch import WatchEvent, WatchFeed

BOOKMARK_EVERY_S = 60.0
WATCH_LIMIT_S = (1800, 3600)
"""Without timeoutSeconds a watch ends after a time between these, as on the real server."""

STALLED_S = 60.0
"""A client that takes nothing for so long is given up."""

LINES_AT_ONCE = 500
"""So many events are written before the client is given time to take them."""


class _Cut(Exception):
    """The stream ends here, at the plan's wish or because nobody reads it."""

    def __init__(self, *, reset: bool) -> None:
        super().__init__()
        self.reset = reset


class WatchStream:
    """One watch that is being answered."""

    def __init__(
        self, response: web.StreamResponse, feed: WatchFeed, form: Form, bookmark_every_s: float
    ) -> None:
        self._response = response
        self._feed = feed
        self._form = form
        self._bookmark_every_s = bookmark_every_s
        self._bookmark_wanted = False
        self._cut: CutStream | None = None
        self._lost: LostEvents | None = None
        self._events = 0
        self._changes = 0

    def want_bookmark(self) -> None:
        """Send a bookmark soon, if the client takes any."""
        self._bookmark_wanted = True
        self._feed.wake()

    def plan(self, faults: Faults, request: ResourceRequest) -> None:
        """Take what is to go wrong with this watch from the plan."""
        self._cut = faults.take(CutStream, request)
        self._lost = faults.take(LostEvents, request)

    async def run(self) -> bool:
        """Send until the end; whether the connection is to be reset then."""
        limit_s = self._feed.options.timeout_s or random.uniform(*WATCH_LIMIT_S)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await self._send_all()
        except _Cut as cut:
            return cut.reset
        except ApiError as error:
            await self._write([line("ERROR", msgspec.json.encode(error.status))])
        return False

    async def _send_all(self) -> None:
        await self._send(self._feed.start())
        if self._feed.tells_state:
            await self._bookmark(ends_state=True)
        while True:
            self._cut_if_due()
            try:
                async with asyncio.timeout(self._bookmark_every_s):
                    await self._feed.wait()
            except TimeoutError:
                self._bookmark_wanted = True
            await self._send(self._feed.take())
            if self._bookmark_wanted:
                self._bookmark_wanted = False
                await self._bookmark()

    async def _send(self, events: Sequence[WatchEvent]) -> None:
        for start in range(0, len(events), LINES_AT_ONCE):
            lines: list[bytes] = []
            for event in events[start : start + LINES_AT_ONCE]:
                if self._cut and self._events >= self._cut.after_events:
                    await self._write(lines)
                self._cut_if_due()
                if not self._is_lost(event):
                    first = self._events == 0
                    resource = self._feed.resource
                    lines.append(event_line(self._form, resource, event, with_columns=first))
                self._events += 1
            await self._write(lines)

    def _cut_if_due(self) -> None:
        if self._cut and self._events >= self._cut.after_events:
            raise _Cut(reset=self._cut.reset)

    def _is_lost(self, event: WatchEvent) -> bool:
        """Never part of the state at the start: what that lacks would count as deleted."""
        if self._lost is None or event.change is None:
            return False
        self._changes += 1
        return 0 < self._changes - self._lost.after_events <= self._lost.count

    async def _bookmark(self, *, ends_state: bool = False) -> None:
        if self._feed.options.bookmarks:
            version = self._feed.version
            told = bookmark_line(self._form, self._feed.resource, version, ends_state=ends_state)
            await self._write([told])

    async def _write(self, lines: Sequence[bytes]) -> None:
        if not lines:
            return
        try:
            async with asyncio.timeout(STALLED_S):
                await self._response.write(b"".join(lines))
        except TimeoutError:
            raise _Cut(reset=True) from None
