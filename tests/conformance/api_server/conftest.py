"""The door of every case: to the simulated server, or with `--real` to a real one."""

import asyncio
import json
import secrets
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from casaba.simulation.api_server.server import SimulatedApiServer
from tests.conformance.api_server.door import ApiDoor, Object, connection, later, session
from tests.conformance.api_server.webhook_server import Webhook, listener_in, webhook_at

_START_S = 20.0


@pytest.fixture(scope="session")
def kubeconfig(on_real: bool, request: pytest.FixtureRequest) -> Iterator[Object]:
    """The administrator's kubeconfig of the server under test."""
    if on_real:
        yield json.loads(request.getfixturevalue("bed").kubeconfig.read_text())
        return
    told: Future[Object] = Future()
    ending = threading.Event()
    thread = threading.Thread(target=_serving, args=(told, ending), name="simulated API server")
    thread.start()
    try:
        yield told.result(_START_S)
    finally:
        ending.set()
        thread.join()


def _serving(told: Future[Object], ending: threading.Event) -> None:
    """One simulated server for all cases, in a loop that outlives theirs."""

    async def serve() -> None:
        async with SimulatedApiServer() as server:
            told.set_result(server.kubeconfig("conformance", ["system:masters"]))
            await asyncio.to_thread(ending.wait)

    try:
        asyncio.run(serve())
    except Exception as problem:
        if told.done():
            raise
        told.set_exception(problem)


@pytest.fixture
async def api(kubeconfig: Object, on_real: bool) -> AsyncIterator[ApiDoor]:
    """An administrator's door with a namespace of its own."""
    url, context = connection(kubeconfig)
    prefix = f"conformance-{secrets.token_hex(4)}"
    async with session(context) as opened:
        door = ApiDoor(url=url, session=opened, namespace=prefix, prefix=prefix)
        async with _own_namespace(door):
            if on_real:
                await _settled(door)
            yield door


@pytest.fixture
async def without_certificate(kubeconfig: Object) -> AsyncIterator[aiohttp.ClientSession]:
    """Connections that no certificate vouches for."""
    async with session(connection(kubeconfig, anonymous=True)[1]) as opened:
        yield opened


@pytest.fixture
async def webhook(on_real: bool, request: pytest.FixtureRequest) -> AsyncIterator[Webhook]:
    """A webhook where the server under test can reach it."""
    namespace = None
    if on_real:
        namespace = request.getfixturevalue("bed").settings.network_namespace("cloud")
    async with webhook_at(listener_in(namespace)) as webhook:
        yield webhook


@asynccontextmanager
async def _own_namespace(door: ApiDoor) -> AsyncIterator[None]:
    namespaces: dict[str, Any] = {"metadata": {"name": door.namespace}}
    (await door.post("/api/v1/namespaces", namespaces)).object(201)
    # Real pods need it; a controller would make it, but later.
    await door.post(door.core("serviceaccounts"), {"metadata": {"name": "default"}})
    try:
        yield
    finally:
        for path in reversed(door.made):
            await door.delete(path)


async def _settled(door: ApiDoor) -> None:
    """Wait until a real cluster has put into the namespace what it puts into each."""
    await later(lambda: door.get(door.core("configmaps", "kube-root-ca.crt")), 200)
