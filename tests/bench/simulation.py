"""The simulated API server: how many requests a second it answers, over TLS, while it is watched.

Server and clients are two processes on one machine; the figure is of both together.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from casaba.kube import CONFIG_MAPS, KubeClient, load_config
from tests.bench.figures import Figure

FIGURES = ("sim_api_rps", "sim_api_watch_events_per_s")

_OBJECTS = 200
_WORKERS = 8
_WATCHES = 5
_SECONDS = 5.0
_START_S = 20.0
_NAMESPACE = "default"
_MIX = ("get", "get", "get", "patch", "get", "list")
_FEWEST_RPS = 400.0
_FEWEST_EVENTS = 100.0


def measure() -> Iterator[Figure]:
    """Requests of a mix of reads, writes and lists, with some watches open."""
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_measured(Path(folder) / "kubeconfig"))


async def _measured(kubeconfig: Path) -> list[Figure]:
    async with _served(kubeconfig), KubeClient(load_config(kubeconfig)) as client:
        for number in range(_OBJECTS):
            body = {"metadata": {"name": f"o-{number}"}, "data": {"text": "x" * 500}}
            await client.create(CONFIG_MAPS, body, namespace=_NAMESPACE)
        load = _Load(client)
        started_s = time.perf_counter()
        await load.run()
        elapsed_s = time.perf_counter() - started_s
    return [
        Figure(
            name="sim_api_rps",
            value=load.requests / elapsed_s,
            unit="requests/s",
            bound=_FEWEST_RPS,
            better="higher",
        ),
        Figure(
            name="sim_api_watch_events_per_s",
            value=load.events / elapsed_s,
            unit="events/s",
            bound=_FEWEST_EVENTS,
            better="higher",
        ),
    ]


class _Load:
    """Workers that go through the mix, and watches that count lines."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.requests = 0
        self.events = 0

    async def run(self) -> None:
        """For the seconds of one measurement."""
        end_s = time.perf_counter() + _SECONDS
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(self._watch()) for _ in range(_WATCHES)]
            async with asyncio.TaskGroup() as workers:
                for number in range(_WORKERS):
                    workers.create_task(self._work(number, end_s))
            for watch in watches:
                watch.cancel()

    async def _work(self, number: int, end_s: float) -> None:
        names = itertools.cycle(f"o-{(number * 25 + step) % _OBJECTS}" for step in range(_OBJECTS))
        for verb, name in zip(itertools.cycle(_MIX), names, strict=False):
            if time.perf_counter() >= end_s:
                return
            await self._ask(verb, name)
            self.requests += 1

    async def _ask(self, verb: str, name: str) -> None:
        match verb:
            case "get":
                await self._client.get(CONFIG_MAPS, name, namespace=_NAMESPACE)
            case "patch":
                patch = {"data": {"changed": str(self.requests)}}
                await self._client.patch(CONFIG_MAPS, name, patch, namespace=_NAMESPACE)
            case "list":
                await self._client.list(CONFIG_MAPS, namespace=_NAMESPACE)

    async def _watch(self) -> None:
        version = (await self._client.list(CONFIG_MAPS)).resource_version
        stream = await self._client.open_watch(
            CONFIG_MAPS, resource_version=version, timeout_s=int(_SECONDS * 10)
        )
        try:
            while chunk := await stream.read():
                self.events += chunk.count(b"\n")
        finally:
            stream.close()


@asynccontextmanager
async def _served(kubeconfig: Path) -> AsyncIterator[None]:
    command = [sys.executable, "-m", "casaba.simulation.api_server", str(kubeconfig)]
    server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert server.stdout
    try:
        # Its first line says that it serves.
        await asyncio.wait_for(server.stdout.readline(), _START_S)
        yield
    finally:
        server.terminate()
        await server.wait()
