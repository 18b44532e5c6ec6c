"""A door before an API server that changes its answers: of an older release, or with a gate off."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
from aiohttp import web

from casaba.kube import KubeConfig
from casaba.kube.identity import Identity

GATED = ("allowMultipleAllocations", "requestPolicy")
"""What an API server without DRAConsumableCapacity drops."""

SILENCE = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "message": "error trying to reach service: dial tcp 10.0.0.7:9394: i/o timeout",
    "reason": "ServiceUnavailable",
    "code": 503,
}
"""What the API server says of a pod that it can't reach."""

_HOP_HEADERS = ("Transfer-Encoding", "Content-Encoding", "Content-Length")


def without_gate(value: Any) -> Any:
    """An object as that server stores it."""
    if isinstance(value, dict):
        return {key: without_gate(held) for key, held in value.items() if key not in GATED}
    return [without_gate(held) for held in value] if isinstance(value, list) else value


@dataclass
class Gateway:
    """Use as `async with Gateway(config) as gateway`, then `gateway.config`."""

    behind: KubeConfig
    version: str | None = None
    """Another version than the server's own."""
    gate: bool = True
    """Whether consumable capacities are kept."""
    resource_api: bool = True
    """Whether resource.k8s.io/v1 is served."""
    metrics: str | None = None
    """What agents serve, through the proxy of their pods."""
    silent: bool = False
    """Whether pods give no answer to the API server, as behind a NetworkPolicy that refuses."""
    hangs: bool = False
    """Whether the API server waits for them, as behind one that drops."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Method and path with query of every request."""

    async def __aenter__(self) -> Gateway:
        proof = await Identity(self.behind).proof()
        connector = aiohttp.TCPConnector(ssl=proof.tls or True)
        self._session = aiohttp.ClientSession(connector=connector)
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.config = replace(
            KubeConfig(origin="gateway", server=f"http://127.0.0.1:{self._runner.addresses[0][1]}")
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        self.asked.append((request.method, str(request.rel_url)))
        if request.path == "/version" and self.version:
            return web.json_response({"major": "1", "minor": "0", "gitVersion": self.version})
        if not self.resource_api and request.path.startswith("/apis/resource.k8s.io/v1"):
            return web.Response(status=404, text="404 page not found")
        if "/proxy/metrics" in request.path and self.hangs:
            await asyncio.Event().wait()
        if "/proxy/metrics" in request.path and self.silent:
            return web.json_response(SILENCE, status=503)
        if "/proxy/metrics" in request.path and self.metrics is not None:
            return web.Response(text=self.metrics)
        return await self._passed_on(request)

    async def _passed_on(self, request: web.BaseRequest) -> web.Response:
        headers = {
            name: value
            for name, value in request.headers.items()
            if name in ("Content-Type", "Accept")
        }
        async with self._session.request(
            request.method,
            self.behind.server + str(request.rel_url),
            data=await request.read() or None,
            headers=headers,
        ) as answer:
            body = await answer.read()
            kept = {
                name: value for name, value in answer.headers.items() if name not in _HOP_HEADERS
            }
        if not self.gate and request.path.endswith("/resourceslices"):
            body = json.dumps(without_gate(json.loads(body))).encode()
        return web.Response(status=answer.status, body=body, headers=kept)
