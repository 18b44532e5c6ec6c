"""What is asked to go wrong does, for whom it is meant, and as often."""

import asyncio
import time
from typing import Any

import aiohttp
import pytest

from casaba.aiokit import Backoff
from casaba.kube import CONFIG_MAPS, Informer, KubeClient
from casaba.simulation.api_server.faults import (
    CutStream,
    Fault,
    LostAnswer,
    LostEvents,
    Refusal,
    Slowness,
    Target,
    Weather,
)
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.component.api_server.conftest import Door

pytestmark = pytest.mark.timeout(30)

MAPS = "/api/v1/namespaces/default/configmaps"


async def codes(door: Door, count: int, path: str = MAPS) -> list[int]:
    """The codes of so many reads."""
    return [(await door.ask("GET", path)).code for _ in range(count)]


async def test_a_storm_of_refusals_ends(server: SimulatedApiServer, door: Door) -> None:
    refusal = Refusal(code=429, retry_after_s=3)
    server.faults.add(refusal, Target(verbs={"list"}, resources={"configmaps"}), times=2)
    assert await codes(door, 1, "/api/v1/nodes") == [200]
    first = await door.ask("GET", MAPS)
    assert (first.code, first.headers["Retry-After"]) == (429, "3")
    assert first.json["reason"] == "TooManyRequests"
    assert await codes(door, 2) == [429, 200]
    assert server.faults.met == 2


async def test_a_fault_can_last_until_it_is_cleared(server: SimulatedApiServer, door: Door) -> None:
    server.faults.add(Refusal(code=503), times=None)
    assert await codes(door, 3) == [503] * 3
    server.faults.clear()
    assert await codes(door, 1) == [200]


async def test_a_fault_is_for_whom_it_is_meant(server: SimulatedApiServer, door: Door) -> None:
    server.faults.add(Refusal(), Target(usernames={"somebody"}), times=None)
    assert await codes(door, 1) == [200]


async def test_an_answer_can_be_late(server: SimulatedApiServer, door: Door) -> None:
    server.faults.add(Slowness(delay_s=0.1))
    started_s = time.monotonic()
    assert await codes(door, 1) == [200]
    assert time.monotonic() - started_s >= 0.1


@pytest.mark.parametrize("done", [True, False])
async def test_an_answer_can_be_lost(server: SimulatedApiServer, door: Door, done: bool) -> None:
    server.faults.add(LostAnswer(done=done), Target(verbs={"create"}))
    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        await door.create(MAPS, "a")
    assert (await door.ask("GET", f"{MAPS}/a")).code == (200 if done else 404)


async def test_a_stream_can_end_early(server: SimulatedApiServer, door: Door) -> None:
    for name in "abc":
        await door.create(MAPS, name)
    server.faults.add(CutStream(after_events=2))
    reply = await door.ask("GET", f"{MAPS}?watch=1")
    assert [line["object"]["metadata"]["name"] for line in reply.lines] == ["a", "b"]


async def test_a_stream_can_break(server: SimulatedApiServer, door: Door) -> None:
    await door.create(MAPS, "a")
    server.faults.add(CutStream(after_events=1, reset=True))
    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        await door.ask("GET", f"{MAPS}?watch=1")


async def test_events_can_be_lost(server: SimulatedApiServer, door: Door) -> None:
    version = (await door.ask("GET", MAPS)).json["metadata"]["resourceVersion"]
    for name in "abcd":
        await door.create(MAPS, name)
    server.faults.add(LostEvents(after_events=1, count=2))
    lines = await door.first_lines(f"{MAPS}?watch=1&resourceVersion={version}", 2)
    assert [line["object"]["metadata"]["name"] for line in lines] == ["a", "d"]


async def test_the_state_at_the_start_of_a_watch_is_never_lost(
    server: SimulatedApiServer, door: Door
) -> None:
    for name in "ab":
        await door.create(MAPS, name)
    server.faults.add(LostEvents(count=3))
    lines = await door.first_lines(f"{MAPS}?watch=1", 2)
    assert [line["object"]["metadata"]["name"] for line in lines] == ["a", "b"]


async def test_weather_is_the_same_for_the_same_seed(
    server: SimulatedApiServer, door: Door
) -> None:
    chances: list[tuple[float, Fault]] = [(0.3, Refusal(code=500)), (0.3, Refusal(code=409))]
    seen: list[Any] = []
    for _ in range(2):
        server.faults.storm(Weather(seed=7, chances=chances))
        seen.append(await codes(door, 30))
    assert seen[0] == seen[1]
    assert set(seen[0]) == {200, 409, 500}


async def test_an_informer_gets_through_bad_weather(
    server: SimulatedApiServer, client: KubeClient, door: Door
) -> None:
    watches = Target(verbs={"watch", "list"}, resources={"configmaps"})
    chances: list[tuple[float, Fault]] = [
        (0.3, Refusal(code=500)),
        (0.3, Refusal(code=429, retry_after_s=0)),
        (0.5, CutStream(after_events=3)),
        (0.9, CutStream(after_events=2, reset=True)),
    ]
    expected = {f"m-{number}" for number in range(40) if number % 3}
    server.faults.storm(Weather(seed=3, chances=chances, target=watches))
    backoff = Backoff(first_s=0.01, limit_s=0.05)
    async with Informer(client, CONFIG_MAPS, namespace="default", backoff=backoff) as informer:
        async with asyncio.TaskGroup() as group:
            group.create_task(_churn(server, door))
            while {key.name for key in informer.objects} != expected:
                await anext(informer)
    assert server.faults.met > 3


async def _churn(server: SimulatedApiServer, door: Door) -> None:
    for number in range(40):
        await door.create(MAPS, f"m-{number}")
        if number % 3 == 0:
            await door.ask("DELETE", f"{MAPS}/m-{number}")
    server.faults.clear()


async def test_a_stop_does_not_wait_for_a_late_answer(
    server: SimulatedApiServer, door: Door
) -> None:
    server.faults.add(Slowness(delay_s=60))
    async with asyncio.TaskGroup() as group:
        late = group.create_task(_unanswered(door))
        while not server.faults.met:
            await door.ask("GET", "/readyz")
        started_s = time.monotonic()
        await server.stop()
        assert time.monotonic() - started_s < 2
    assert late.done()


async def _unanswered(door: Door) -> None:
    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        await door.ask("GET", MAPS)
