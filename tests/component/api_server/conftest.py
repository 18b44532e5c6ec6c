"""A simulated API server, a plain HTTP door to it, and casaba's own client."""

import io
import json
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from casaba.kube import KubeClient
from casaba.simulation.api_server.server import SimulatedApiServer

Object = dict[str, Any]

TIMEOUT = aiohttp.ClientTimeout(total=10)

SERVER_LOGGERS = ("aiohttp.server", "casaba.simulation.api_server.http_door")


@dataclass(frozen=True)
class Reply:
    """A status and what came with it."""

    code: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def lines(self) -> list[Any]:
        """The events of a watch that has ended."""
        return [json.loads(line) for line in self.text.splitlines()]


class Door:
    """Requests as somebody, word for word."""

    def __init__(self, server: SimulatedApiServer, session: aiohttp.ClientSession) -> None:
        self._server = server
        self.session = session

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        **headers: str,
    ) -> Reply:
        """Ask, and read the answer to its end."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            headers["Content-Type"] = content_type
            body = body if isinstance(body, io.BytesIO) else json.dumps(body).encode()
        async with self.session.request(
            method, self._server.url + path, data=body, headers=headers
        ) as response:
            return Reply(response.status, response.headers, await response.text())

    async def first_lines(self, path: str, count: int, **headers: str) -> list[Any]:
        """The first events of a watch, which goes on without us."""
        async with self.session.get(self._server.url + path, headers=headers) as response:
            assert response.status == 200, await response.text()
            return [json.loads(await response.content.readline()) for _ in range(count)]

    async def create(self, path: str, name: str, **fields: Any) -> Any:
        """Create an object that must be taken."""
        labels = fields.pop("labels", {})
        body = {"metadata": {"name": name, "labels": labels}, **fields}
        reply = await self.ask("POST", path, body)
        assert reply.code == 201, reply.text
        return reply.json


def door_of(server: SimulatedApiServer, username: str, *groups: str) -> Door:
    """A door of a user; close its session."""
    context = server.authority.client_context(username, groups)
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    return Door(server, aiohttp.ClientSession(connector=connector, timeout=TIMEOUT))


@pytest.fixture
async def server(caplog: pytest.LogCaptureFixture) -> AsyncIterator[SimulatedApiServer]:
    """What clients do, and what goes wrong as planned, must not look like its own failure."""
    async with SimulatedApiServer() as server:
        yield server
    failures = [one for one in caplog.get_records("call") if one.name in SERVER_LOGGERS]
    assert not [one.getMessage() for one in failures if one.levelno >= logging.ERROR]


@pytest.fixture
async def door(server: SimulatedApiServer) -> AsyncIterator[Door]:
    """The administrator's."""
    door = door_of(server, "admin", "system:masters")
    async with door.session:
        yield door


@pytest.fixture
async def client(server: SimulatedApiServer) -> AsyncIterator[KubeClient]:
    async with KubeClient(server.admin_config()) as client:
        yield client
