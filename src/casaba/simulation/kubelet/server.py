"""The kubelet's own HTTPS server: logs, for the API server; who has no certificate is refused."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager

from aiohttp import web

from casaba.errors import InvalidInput
from casaba.simulation.authority import ClusterAuthority
from casaba.simulation.kubelet.container_states import Waiting
from casaba.simulation.kubelet.container_words import POD_IP
from casaba.simulation.kubelet.log_options import check_has_log, log_options, previous_wanted
from casaba.simulation.kubelet.logs import ContainerLog
from casaba.simulation.kubelet.pods import Pods

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_SHUTDOWN_S = 0.1


@asynccontextmanager
async def kubelet_server(
    pods: Pods, authority: ClusterAuthority, node_name: str
) -> AsyncIterator[int]:
    """Serve on a free port of the loopback address, which is given."""
    routes = _Routes(pods)
    application = web.Application(middlewares=[_only_with_certificate])
    application.add_routes(
        [
            web.get("/healthz", routes.healthz),
            web.get("/pods", routes.pods),
            web.get("/containerLogs/{namespace}/{pod}/{container}", routes.container_logs),
        ]
    )
    runner = web.AppRunner(
        application,
        shutdown_timeout=_SHUTDOWN_S,
        access_log=None,
        # A reader that goes away must not leave its follower behind.
        handler_cancellation=True,
    )
    await runner.setup()
    try:
        context = authority.server_context([POD_IP, "localhost", node_name])
        site = web.TCPSite(runner, POD_IP, 0, ssl_context=context)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@web.middleware
async def _only_with_certificate(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The TLS context has checked the certificate, if there was one."""
    transport = request.transport
    if transport is None or not transport.get_extra_info("peercert"):
        return web.Response(status=401, text="Unauthorized")
    return await handler(request)


class _Routes:
    """What the server answers."""

    def __init__(self, pods: Pods) -> None:
        self._pods = pods

    async def healthz(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def pods(self, _: web.Request) -> web.StreamResponse:
        items = [worker.pod for worker in self._pods]
        listed = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
        return web.json_response(listed)

    async def container_logs(self, request: web.Request) -> web.StreamResponse:
        try:
            log = self._wanted_log(request)
            options = log_options(request.query, time.time_ns())
        except InvalidInput as error:
            return web.Response(status=400, text=str(error))
        if log is None:
            named = request.match_info
            title = f'container "{named["container"]}" in pod "{named["pod"]}"'
            return web.Response(status=404, text=f"{title} has no log on this node")
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        async with aclosing(log.read(options)) as texts:
            async for text in texts:
                await response.write(text)
        await response.write_eof()
        return response

    def _wanted_log(self, request: web.Request) -> ContainerLog | None:
        """Raises InvalidInput when the container has not run yet."""
        named = request.match_info
        worker = self._pods.find(named["namespace"], named["pod"])
        loop = worker.containers.loop(named["container"]) if worker else None
        if loop is None:
            return None
        previous = previous_wanted(request.query)
        check_has_log(named["pod"], loop.state, previous=previous)
        if previous and not isinstance(loop.state.state, Waiting):
            return loop.previous_log
        return loop.log
