"""The agent's slice belongs to its Node: without one there is nothing to publish."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from casaba.kube import NODES, RESOURCE_SLICES, KubeClient
from casaba.services.node_agent.publisher import SlicePublisher
from casaba.simulation.api_server import SimulatedApiServer
from casaba.wire.kubernetes import Node, ResourceSlice
from tests.unit.values import A10

WAIT_S = 20.0


@pytest.fixture
async def client() -> AsyncIterator[KubeClient]:
    async with SimulatedApiServer() as server, KubeClient(server.admin_config()) as client:
        yield client


async def published(client: KubeClient) -> list[ResourceSlice]:
    return list((await client.list(RESOURCE_SLICES)).items)


async def until_published(client: KubeClient) -> ResourceSlice:
    async with asyncio.timeout(WAIT_S):
        while not (found := await published(client)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found[0]


async def until_said(caplog: pytest.LogCaptureFixture, event: str) -> None:
    async with asyncio.timeout(WAIT_S):
        while event not in caplog.messages:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def new_node(client: KubeClient) -> Node:
    return await client.create(NODES, {"metadata": {"name": "edge-1"}})


async def test_nothing_is_published_while_the_node_is_deleted_and_all_once_it_is_back(
    client: KubeClient, caplog: pytest.LogCaptureFixture
) -> None:
    publisher = SlicePublisher(client, await new_node(client), (A10,))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(publisher.run())
        slice_ = await until_published(client)
        await client.delete(NODES, "edge-1")
        # as the garbage collector does with what the node owned
        await client.delete(RESOURCE_SLICES, slice_.metadata.name)
        await until_said(caplog, "slices.not_published")
        assert await published(client) == []
        node = await new_node(client)
        back = await until_published(client)
        assert [owner.uid for owner in back.metadata.owner_references] == [node.metadata.uid]
        running.cancel()
