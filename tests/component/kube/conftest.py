"""A server that answers as told, and a client of it."""

from collections.abc import AsyncIterator

import pytest

from casaba.kube import KubeClient, KubeConfig
from tests.component.kube.recording_server import RecordingServer


@pytest.fixture
async def server() -> AsyncIterator[RecordingServer]:
    async with RecordingServer() as server:
        yield server


@pytest.fixture
async def client(server: RecordingServer) -> AsyncIterator[KubeClient]:
    async with KubeClient(KubeConfig(origin="test", server=server.url)) as client:
        yield client
