"""A process's metrics and health over plain HTTP: /metrics, /healthz and /readyz.

The text is Prometheus' own, or OpenMetrics for who asks for it: first what a prometheus-client
registry holds, then families that are read anew for each scrape.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Self

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from casaba.errors import HostError, InvalidInput
from casaba.net.bounded_connections import BoundedConnections, ConnectionBounds
from casaba.wire.exposition import Family, render

log = logging.getLogger(__name__)

READ_TIMEOUT_S = 20.0
"""So long a scrape's reading may take, then the scraper is told; Prometheus waits 10 s."""

_STOP_S = 2.0
_BOUNDS = ConnectionBounds()
_OPENMETRICS = "application/openmetrics-text"
_OPENMETRICS_END = b"# EOF\n"
_TEXT = "text/plain"


class MetricsServer:
    """Serves one registry; use as `async with MetricsServer(address, registry, is_ready=...)`.

    Collectors are called on the event loop's thread, one scrape at a time.
    """

    def __init__(
        self,
        address: str,
        registry: CollectorRegistry,
        *,
        is_ready: Callable[[], str | None],
        families: Callable[[], Awaitable[Iterable[Family]]] | None = None,
        bounds: ConnectionBounds = _BOUNDS,
    ) -> None:
        """`address`: `host:port`, `:port` or `[v6]:port`; port 0 takes a free one.

        `is_ready` returns None, or in a few words why not. `families` is awaited at each scrape
        for what the registry does not hold; there blocking reads can go to a thread. `bounds`
        holds for all connections, since every pod can reach the door.
        Raises InvalidInput for another form of address.
        """
        self._host, self._wanted_port = parse_address(address)
        self._registry = registry
        self._is_ready = is_ready
        self._families = families
        self._connections = BoundedConnections(bounds)
        self._one_scrape = asyncio.Lock()
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        """Listen; raises HostError when the address can't be taken."""
        runner = web.AppRunner(self._app(), access_log=None, shutdown_timeout=_STOP_S)
        await runner.setup()
        assert runner.server is not None
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._connections.protocols(runner.server), self._host, self._wanted_port
            )
        except OSError as error:
            await runner.cleanup()
            where = f"{self._host or '*'}:{self._wanted_port}"
            reason = error.strerror or error
            raise HostError(
                f"can't serve metrics on {where}: {reason}; choose another address"
            ) from error
        self._runner = runner
        log.info("metrics.served", extra={"port": self.port})
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        listener, self._listener = self._listener, None
        runner, self._runner = self._runner, None
        if listener is not None:
            listener.close()
        if runner is not None:
            await runner.cleanup()

    @property
    def port(self) -> int:
        """The port it listens on; only known inside the block."""
        assert self._listener is not None
        return int(self._listener.sockets[0].getsockname()[1])

    @property
    def connection_count(self) -> int:
        """How many are open."""
        return self._connections.count

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._connections.middleware])
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        return app

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        try:
            async with asyncio.timeout(READ_TIMEOUT_S), self._one_scrape:
                families = await self._families() if self._families else ()
                body = encode(self._registry)
                if content_type.startswith(_OPENMETRICS):
                    more = render(families, openmetrics=True)
                    body = body.removesuffix(_OPENMETRICS_END) + more + _OPENMETRICS_END
                else:
                    body += render(families)
        except Exception as error:  # a fault of one collector is no reason to end the process
            log.exception("metrics.not_collected")
            return web.Response(status=500, text=f"metrics can't be collected: {error!r}\n")
        answer = web.Response(body=body, headers={"Content-Type": content_type})
        answer.enable_compression()
        return answer

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n", content_type=_TEXT)

    async def _readyz(self, _: web.Request) -> web.Response:
        reason = self._is_ready()
        if reason is None:
            return web.Response(text="ok\n", content_type=_TEXT)
        return web.Response(status=503, text=f"not ready: {reason}\n", content_type=_TEXT)


def parse_address(address: str) -> tuple[str | None, int]:
    """Host (None: every interface) and port; raises InvalidInput."""
    host, colon, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    plain = host == bare and ":" not in host
    if not colon or not (plain or host == f"[{bare}]") or not _is_port(port):
        raise InvalidInput(
            f"address {address!r}: give host:port, :port for every interface, or [::1]:port, "
            "with a port from 0 (a free one) to 65535"
        )
    return bare or None, int(port)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= 65535
