"""What people read in `kubectl describe`, and that telling it never gets in the way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from casaba.aiokit import Backoff
from casaba.kube import EVENTS, About, EventRecorder, KubeClient, events
from casaba.simulation.api_server.faults import Refusal, Target
from casaba.simulation.api_server.server import SimulatedApiServer

pytestmark = pytest.mark.timeout(20)

NODE = About(api_version="v1", kind="Node", name="edge-1", uid="u-1")
CLAIM = About(
    api_version="resource.k8s.io/v1", kind="ResourceClaim", namespace="default", name="c" * 253
)


@asynccontextmanager
async def recording(server: SimulatedApiServer) -> AsyncIterator[tuple[EventRecorder, KubeClient]]:
    async with KubeClient(server.admin_config()) as client:
        recorder = EventRecorder(
            client,
            component="casaba-test",
            instance="test-0",
            host="edge-1",
            backoff=Backoff(first_s=0.001, limit_s=0.002),
        )
        running = asyncio.create_task(recorder.run())
        try:
            yield recorder, client
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


@pytest.fixture
async def server() -> AsyncIterator[SimulatedApiServer]:
    async with SimulatedApiServer() as server:
        yield server


async def told(client: KubeClient) -> list[dict[str, Any]]:
    listed = await client.list(EVENTS.decoded_as(dict))
    return sorted(listed.items, key=lambda event: str(event["message"]))


async def test_an_event_says_what_happened_to_whom(server: SimulatedApiServer) -> None:
    async with recording(server) as (recorder, client):
        recorder.record(NODE, type="Warning", reason="CardLost", message="one")
        recorder.record(CLAIM, reason="Prepared", message="two")
        await recorder.sent()
        node, claim = await told(client)
    assert node["metadata"]["namespace"] == "default"
    assert node["metadata"]["name"].startswith("edge-1.")
    assert node["involvedObject"] | {"namespace": ""} == {
        "apiVersion": "v1",
        "kind": "Node",
        "namespace": "",
        "name": "edge-1",
        "uid": "u-1",
    }
    assert (node["type"], node["reason"], node["count"]) == ("Warning", "CardLost", 1)
    assert node["source"] == {"component": "casaba-test", "host": "edge-1"}
    assert node["reportingInstance"] == "test-0"
    assert node["firstTimestamp"] == node["lastTimestamp"]
    assert len(claim["metadata"]["name"]) == 253


async def test_the_same_again_is_counted_even_after_the_server_forgot_it(
    server: SimulatedApiServer,
) -> None:
    async with recording(server) as (recorder, client):
        for _ in range(3):
            recorder.record(NODE, reason="CardLost", message="one")
        await recorder.sent()
        (event,) = await told(client)
        assert event["count"] == 3
        await client.delete(EVENTS, event["metadata"]["name"], namespace="default")
        recorder.record(NODE, reason="CardLost", message="one")
        await recorder.sent()
        (again,) = await told(client)
    assert again["count"] == 4
    assert again["firstTimestamp"] == event["firstTimestamp"]


async def test_trouble_that_passes_loses_none_and_a_refusal_only_its_own(
    server: SimulatedApiServer,
) -> None:
    at_events = Target(resources={"events"})
    server.faults.add(Refusal(code=500), at_events, times=3)
    async with recording(server) as (recorder, client):
        recorder.record(NODE, reason="A", message="one")
        await recorder.sent()
        server.faults.add(Refusal(code=403), at_events, times=1)
        for message in ("two", "three"):
            recorder.record(NODE, reason="A", message=message)
        await recorder.sent()
        assert [event["message"] for event in await told(client)] == ["one", "three"]
        assert recorder.dropped == 1


async def test_a_lost_server_costs_no_time_and_little_memory(
    server: SimulatedApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "QUEUE_LIMIT", 10)
    await server.stop()
    async with recording(server) as (recorder, _):
        for number in range(50):
            recorder.record(NODE, reason="A", message=f"{number}")
        assert recorder.dropped == 40
