"""Watches over HTTPS, read raw and by casaba's own informer."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from casaba.kube import CONFIG_MAPS, Informer, KubeClient, Synced
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.component.api_server.conftest import Door, door_of

pytestmark = pytest.mark.timeout(30)

MAPS = "/api/v1/namespaces/default/configmaps"
WATCH_LIST = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
MERGE = "application/merge-patch+json"


async def events(door: Door, query: str, count: int) -> list[tuple[str, str]]:
    """Type and name of the first events of a watch."""
    lines = await door.first_lines(f"{MAPS}?watch=1&{query}", count)
    return [(line["type"], line["object"]["metadata"].get("name", "")) for line in lines]


class Watcher:
    """A watch that is open while it is used."""

    def __init__(self, server: SimulatedApiServer, door: Door, query: str = "") -> None:
        self._url = f"{server.url}{MAPS}?watch=1&allowWatchBookmarks=true&{query}"
        self._door = door

    async def __aenter__(self) -> "Watcher":
        self._response = await self._door.session.get(self._url)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._response.close()

    async def rest(self) -> AsyncIterator[Any]:
        """Every event until the end."""
        while line := await self.line():
            yield line

    async def line(self) -> Any:
        """The next event; None at the end."""
        text = await self._response.content.readuntil(b"\n")
        return json.loads(text) if text else None


async def test_a_watch_from_a_version_tells_what_happened_since(door: Door) -> None:
    await door.create(MAPS, "old")
    version = (await door.ask("GET", MAPS)).json["metadata"]["resourceVersion"]
    await door.create(MAPS, "a")
    await door.ask("PATCH", f"{MAPS}/a", {"data": {"k": "v"}}, content_type=MERGE)
    await door.ask("DELETE", f"{MAPS}/a")
    assert await events(door, f"resourceVersion={version}", 3) == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]


@pytest.mark.parametrize("query", ["", "resourceVersion=0", WATCH_LIST.replace("&allow", "&no")])
async def test_a_watch_can_start_with_what_is_there(door: Door, query: str) -> None:
    await door.create(MAPS, "b")
    await door.create(MAPS, "a")
    assert await events(door, query, 2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_watch_list_ends_with_a_marked_bookmark(door: Door) -> None:
    await door.create(MAPS, "a")
    added, bookmark = await door.first_lines(f"{MAPS}?watch=1&{WATCH_LIST}", 2)
    assert (added["type"], bookmark["type"]) == ("ADDED", "BOOKMARK")
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) >= int(
        added["object"]["metadata"]["resourceVersion"]
    )


async def test_an_object_that_stops_to_match_is_gone_for_the_watch(
    server: SimulatedApiServer, door: Door
) -> None:
    await door.create(MAPS, "a", labels={"on": "y"})
    async with Watcher(server, door, "labelSelector=on%3Dy&resourceVersion=0") as watcher:
        assert (await watcher.line())["type"] == "ADDED"
        assert (await watcher.line())["type"] == "BOOKMARK"
        off = {"metadata": {"labels": {"on": "n"}}}
        changed = await door.ask("PATCH", f"{MAPS}/a", off, content_type=MERGE)
        line = await watcher.line()
        assert (line["type"], line["object"]["metadata"]["labels"]) == ("DELETED", {"on": "y"})
        version = line["object"]["metadata"]["resourceVersion"]
        assert version == changed.json["metadata"]["resourceVersion"]
        on = {"metadata": {"labels": {"on": "y"}}}
        await door.ask("PATCH", f"{MAPS}/a", on, content_type=MERGE)
        assert (await watcher.line())["type"] == "ADDED"


async def test_a_bookmark_tells_how_far_the_server_is(
    server: SimulatedApiServer, door: Door
) -> None:
    async with Watcher(server, door, f"resourceVersion={server.version}") as watcher:
        await door.create("/api/v1/namespaces", "elsewhere")
        server.send_bookmarks()
        line = await watcher.line()
        assert (line["type"], line["object"]["metadata"]) == (
            "BOOKMARK",
            {"resourceVersion": str(server.version)},
        )


async def test_a_forgotten_version_is_told_in_the_stream(
    server: SimulatedApiServer, door: Door
) -> None:
    version = server.version
    await door.create(MAPS, "a")
    server.compact()
    reply = await door.ask("GET", f"{MAPS}?watch=1&resourceVersion={version}")
    (line,) = reply.lines
    assert (line["type"], line["object"]["code"], line["object"]["reason"]) == (
        "ERROR",
        410,
        "Expired",
    )


async def test_a_watch_for_tables_names_the_columns_once(
    server: SimulatedApiServer, door: Door
) -> None:
    await door.create(MAPS, "a")
    await door.create(MAPS, "b")
    accept = "application/json;as=Table;g=meta.k8s.io;v=v1"
    lines = await door.first_lines(f"{MAPS}?watch=1", 2, Accept=accept)
    first, second = (line["object"] for line in lines)
    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert not second["columnDefinitions"]
    assert (first["rows"][0]["cells"][0], second["rows"][0]["cells"][0]) == ("a", "b")


async def test_an_informer_follows(server: SimulatedApiServer, client: KubeClient) -> None:
    async with Informer(client, CONFIG_MAPS, namespace="default") as informer:
        await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace="default")
        await until(informer, "a")
        server.compact()
        await client.delete(CONFIG_MAPS, "a", namespace="default")
        await client.create(CONFIG_MAPS, {"metadata": {"name": "b"}}, namespace="default")
        await until(informer, "b")
        assert [key.name for key in informer.objects] == ["b"]


async def test_an_informer_survives_a_restart(
    server: SimulatedApiServer, client: KubeClient
) -> None:
    url = server.url
    async with Informer(client, CONFIG_MAPS, namespace="default") as informer:
        while not isinstance(await anext(informer), Synced):
            pass
        following = asyncio.ensure_future(until(informer, "b"))
        await asyncio.sleep(0)
        await server.restart()
        assert server.url == url
        async with KubeClient(server.admin_config()) as other:
            await other.create(CONFIG_MAPS, {"metadata": {"name": "b"}}, namespace="default")
        await following


async def until(informer: Informer[Any], name: str) -> None:
    """Read events until an object is there."""
    while not any(key.name == name for key in informer.objects):
        await anext(informer)


async def test_a_watch_ends_when_its_time_is_over(door: Door) -> None:
    await door.create(MAPS, "a")
    reply = await door.ask("GET", f"{MAPS}?watch=1&timeoutSeconds=1")
    assert [line["type"] for line in reply.lines] == ["ADDED"]


async def test_a_watch_that_is_not_read_falls_out_of_the_log() -> None:
    async with SimulatedApiServer(log_limit=20) as server:
        door = door_of(server, "admin", "system:masters")
        async with door.session, Watcher(server, door) as watcher:
            # More than all buffers between server and client hold.
            big = {"data": {"text": "x" * 300_000}}
            await door.create(MAPS, "a", **big)
            for number in range(100):
                patch = {"data": {"number": str(number)}}
                await door.ask("PATCH", f"{MAPS}/a", patch, content_type=MERGE)
            kinds = [line["type"] async for line in watcher.rest()]
            assert kinds[-1] == "ERROR"
            assert len(kinds) < 100


async def test_many_watches_hear_of_many_changes(server: SimulatedApiServer, door: Door) -> None:
    async with AsyncExitStack() as stack:
        query = f"resourceVersion={server.version}"
        watchers = [
            await stack.enter_async_context(Watcher(server, door, query)) for _ in range(10)
        ]
        for number in range(60):
            await door.create(MAPS, f"m-{number}")
        for watcher in watchers:
            lines = [await watcher.line() for _ in range(60)]
            versions = [int(line["object"]["metadata"]["resourceVersion"]) for line in lines]
            assert versions == sorted(set(versions))


async def test_a_stop_breaks_every_watch(server: SimulatedApiServer, door: Door) -> None:
    async with Watcher(server, door, f"resourceVersion={server.version}") as watcher:
        await server.stop()
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await watcher.line()


async def test_watchers_may_leave_in_the_midst_of_events(
    server: SimulatedApiServer, door: Door
) -> None:
    async def make(first: int) -> None:
        for number in range(first, first + 10):
            await door.create(MAPS, f"m-{number}")

    async with AsyncExitStack() as stack:
        for _ in range(60):
            await stack.enter_async_context(Watcher(server, door))
        async with asyncio.TaskGroup() as group:
            for first in range(0, 60, 10):
                group.create_task(make(first))
            group.create_task(stack.aclose())
