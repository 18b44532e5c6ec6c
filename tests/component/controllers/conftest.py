"""A simulated API server, and who may do everything on it."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from casaba.kube import NAMESPACES, KubeClient
from casaba.simulation.api_server import SimulatedApiServer
from tests.component.controllers.clocks import Clocks

WAIT_S = 30.0
NAMESPACE = "hami-system"


@pytest.fixture
async def server(caplog: pytest.LogCaptureFixture) -> AsyncIterator[SimulatedApiServer]:
    caplog.set_level(logging.INFO, "casaba.services")
    async with SimulatedApiServer() as server:
        yield server


@pytest.fixture
async def client(server: SimulatedApiServer) -> AsyncIterator[KubeClient]:
    async with KubeClient(server.admin_config()) as client:
        yield client


@pytest.fixture
async def kubeconfig(server: SimulatedApiServer, client: KubeClient, tmp_path: Path) -> Path:
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(server.kubeconfig()))
    return path


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


async def until(condition: Callable[[], object]) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
