"""The side that is asked: our scheduler and controllers, or with `--real` Kubernetes' own."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from casaba.kube import KubeClient, load_config
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.component.simulation.scheduling import control_plane
from tests.conformance.scheduling.world import World, new_world


@pytest.fixture
async def world(on_real: bool, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A namespace and nodes of its own on one of the two sides."""
    side = _real(request.getfixturevalue("bed").kubeconfig) if on_real else _simulated()
    async with side as client, new_world(client) as made:
        yield made


@contextlib.asynccontextmanager
async def _real(kubeconfig: Path) -> AsyncIterator[KubeClient]:
    async with KubeClient(load_config(kubeconfig)) as client:
        yield client


@contextlib.asynccontextmanager
async def _simulated() -> AsyncIterator[KubeClient]:
    async with SimulatedApiServer() as server:
        async with KubeClient(server.admin_config()) as client, control_plane(client):
            yield client
