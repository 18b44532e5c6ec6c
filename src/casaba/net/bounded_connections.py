"""Connections to an aiohttp application that anybody may open: so many, and each for so long.

A connection costs a descriptor, which the process needs for its work. Who opens many, sends no
request or reads no answer, loses his own first.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware


@dataclass(frozen=True, kw_only=True)
class ConnectionBounds:
    """How many connections, and how long each may keep us waiting."""

    most: int = 128
    """So many at once; one more ends the one that has said nothing for longest."""
    head_s: float = 10.0
    """From the connection to the whole head of its first request."""
    between_s: float = 90.0
    """From a request's head to the next one's; its answer must be read meanwhile."""


class HttpProtocol(Protocol):
    """What aiohttp makes for each connection, as far as a transport calls it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def connection_lost(self, exc: BaseException | None) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def eof_received(self) -> bool | None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class BoundedConnections:
    """Makes the protocols of a listener; `middleware` must be the application's."""

    def __init__(self, bounds: ConnectionBounds) -> None:
        self._bounds = bounds
        self._open: dict[asyncio.BaseTransport, _Connection] = {}
        """Who spoke last comes last."""

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    def protocols(self, inner: Callable[[], HttpProtocol]) -> Callable[[], asyncio.Protocol]:
        """A factory for `create_server` around an application's own."""
        return lambda: _Connection(inner(), self)

    @property
    def middleware(self) -> Middleware:
        """Notes that a request's head has come."""

        @web.middleware
        async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.transport in self._open:
                self.asked(self._open[request.transport])
            return await handler(request)

        return note

    def opened(self, connection: "_Connection") -> None:
        """It has `head_s` for its first request; where it is one too many another ends."""
        while len(self._open) >= self._bounds.most:
            self._victim().end()
        self._open[connection.transport] = connection
        connection.end_after(self._bounds.head_s)

    def asked(self, connection: "_Connection") -> None:
        """It has `between_s` from here."""
        self._open[connection.transport] = self._open.pop(connection.transport)
        connection.has_asked = True
        connection.end_after(self._bounds.between_s)

    def closed(self, connection: "_Connection") -> None:
        """It ended, whoever ended it."""
        self._open.pop(connection.transport, None)

    def _victim(self) -> "_Connection":
        mute = (one for one in self._open.values() if not one.has_asked)
        return next(mute, None) or next(iter(self._open.values()))


class _Connection(asyncio.Protocol):
    """Passes everything on to aiohttp's protocol, and ends the connection when its time is over."""

    transport: asyncio.Transport

    def __init__(self, inner: HttpProtocol, all_: BoundedConnections) -> None:
        self._inner = inner
        self._all = all_
        self._timer: asyncio.TimerHandle | None = None
        self.has_asked = False

    def end_after(self, seconds: float) -> None:
        """Begin the time anew."""
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.end)

    def end(self) -> None:
        """At once, also where an answer is not read."""
        self._stop_timer()
        self._all.closed(self)
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._all.opened(self)
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._all.closed(self)
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
