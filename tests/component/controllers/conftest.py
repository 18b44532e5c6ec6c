"""A simulated API server, and who may do everything on it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import pytest

from casaba.kube import KubeClient
from casaba.simulation.api_server import SimulatedApiServer
from tests.component.controllers.clocks import Clocks

WAIT_S = 30.0


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
def clocks() -> Clocks:
    return Clocks()


async def until(condition: Callable[[], object]) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
