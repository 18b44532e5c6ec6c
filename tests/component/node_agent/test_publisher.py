"""The agent's slice: it belongs to its Node, and is only there if the server keeps all of it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from casaba.kube import (
    EVENTS,
    MUTATING_WEBHOOKS,
    NODES,
    RESOURCE_SLICES,
    About,
    Added,
    EventRecorder,
    Informer,
    KubeClient,
)
from casaba.services.node_agent.publisher import SlicePublisher
from casaba.services.node_agent.status import AgentStatus
from casaba.simulation.api_server import SimulatedApiServer
from casaba.wire.kubernetes import Node, ResourceSlice
from tests.conformance.api_server.webhook_server import (
    Webhook,
    allow,
    listener_in,
    patching,
    rule,
    webhook_at,
)
from tests.unit.values import A10

WAIT_S = 20.0


@pytest.fixture
async def client() -> AsyncIterator[KubeClient]:
    async with SimulatedApiServer() as server, KubeClient(server.admin_config()) as client:
        yield client


def publisher_of(
    client: KubeClient,
    node: Node,
    *,
    events: EventRecorder | None = None,
    retry_s: float = 600.0,
) -> SlicePublisher:
    metadata = node.metadata
    about = About(api_version="v1", kind="Node", name=metadata.name, uid=metadata.uid)
    status = AgentStatus(events or EventRecorder(client, component="test"), about)
    return SlicePublisher(client, node, (A10,), status=status, crippled_retry_s=retry_s)


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
    publisher = publisher_of(client, await new_node(client))
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


async def test_another_offer_is_published_at_once(client: KubeClient) -> None:
    publisher = publisher_of(client, await new_node(client))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(publisher.run())
        first = await until_published(client)
        publisher.offer(())
        await until_devices(client, [])
        publisher.offer((A10,))
        await until_devices(client, ["hami-gpu-0"])
        (again,) = await published(client)
        assert again.metadata.uid == first.metadata.uid
        running.cancel()


async def until_devices(client: KubeClient, names: list[str]) -> None:
    slices = RESOURCE_SLICES.decoded_as(dict)
    async with asyncio.timeout(WAIT_S):
        while True:
            items = (await client.list(slices)).items
            if [[one["name"] for one in item["spec"].get("devices") or []] for item in items] == [
                names
            ]:
                return
            await asyncio.sleep(0.01)


class GateOff:
    """Lets the API server lose what it loses without DRAConsumableCapacity."""

    def __init__(self, client: KubeClient, webhook: Webhook) -> None:
        self._client = client
        self._webhook = webhook

    async def turn_off(self) -> None:
        slices = rule("resourceslices", group="resource.k8s.io")
        entry = self._webhook.entry("/gate", self._dropping, rules=[slices])
        body = {"metadata": {"name": "gate"}, "webhooks": [entry]}
        await self._client.create(MUTATING_WEBHOOKS, body)

    def turn_on(self) -> None:
        self._webhook.responses["/gate"] = allow

    def _dropping(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["operation"] == "DELETE":
            return allow(request)
        paths = [
            f"/spec/devices/{number}/{field}"
            for number, device in enumerate(request["object"]["spec"].get("devices") or [])
            for field in (
                "allowMultipleAllocations",
                *(f"capacity/{key}/requestPolicy" for key in device["capacity"]),
            )
        ]
        return patching(*({"op": "remove", "path": path} for path in paths))(request)


@pytest.fixture
async def gate(client: KubeClient) -> AsyncIterator[GateOff]:
    async with webhook_at(listener_in(None)) as webhook:
        yield GateOff(client, webhook)


async def test_a_server_that_drops_fields_never_has_a_slice_and_the_node_tells_why(
    client: KubeClient, gate: GateOff, caplog: pytest.LogCaptureFixture
) -> None:
    await gate.turn_off()
    seen: list[Any] = []
    events = EventRecorder(client, component="test")
    publisher = publisher_of(client, await new_node(client), events=events, retry_s=0.3)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(publisher.run()),
            group.create_task(events.run()),
            group.create_task(watch_slices(client, seen)),
        ]
        message = await until_event(client, "SliceFieldsDropped")
        assert "allowMultipleAllocations" in message
        assert "turn on the feature gate DRAConsumableCapacity" in message
        assert publisher.device_count == 0
        assert seen == []
        gate.turn_on()
        slice_ = await until_published(client)
        assert publisher.device_count == len(slice_.spec.devices) == 1
        assert await until_event(client, "SliceFieldsKept")
        for task in tasks:
            task.cancel()


async def test_a_slice_whose_fields_are_dropped_later_is_taken_back(
    client: KubeClient, gate: GateOff
) -> None:
    publisher = publisher_of(client, await new_node(client))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(publisher.run())
        slice_ = await until_published(client)
        await gate.turn_off()
        await client.delete(RESOURCE_SLICES, slice_.metadata.name)  # as a kubelet does
        async with asyncio.timeout(WAIT_S):
            while publisher.device_count or await published(client):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        running.cancel()


async def watch_slices(client: KubeClient, seen: list[Any]) -> None:
    async with Informer(client, RESOURCE_SLICES) as slices:
        async for event in slices:
            if isinstance(event, Added) and _lacks_limits(event.object):
                seen.append(event)


def _lacks_limits(slice_: ResourceSlice) -> bool:
    return not all(device.allow_multiple_allocations for device in slice_.spec.devices)


async def until_event(client: KubeClient, reason: str) -> str:
    events = EVENTS.decoded_as(dict)
    async with asyncio.timeout(WAIT_S):
        while True:
            for item in (await client.list(events, namespace="default")).items:
                if item["reason"] == reason:
                    assert item["involvedObject"]["kind"] == "Node"
                    return str(item["message"])
            await asyncio.sleep(0.01)
