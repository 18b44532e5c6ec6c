"""An informer against a server that plays what ends or spoils a watch in real life."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from casaba.aiokit import Backoff
from casaba.kube import (
    NODES,
    Added,
    Deleted,
    Forbidden,
    Informer,
    InformerEvent,
    KubeClient,
    KubeConfig,
    Modified,
    ObjectKey,
    Synced,
    Unreachable,
    open_watch,
)
from casaba.wire.kubernetes import Node
from tests.component.kube.model_server import EXPIRED, Answer, ModelServer

pytestmark = pytest.mark.timeout(20)


@asynccontextmanager
async def following(
    url: str, label_selector: str = "", field_selector: str = ""
) -> AsyncIterator[Informer[Node]]:
    async with KubeClient(KubeConfig(origin="test", server=url)) as client:
        async with Informer(
            client,
            NODES,
            label_selector=label_selector,
            field_selector=field_selector,
            backoff=Backoff(first_s=0.01, limit_s=0.05),
        ) as informer:
            yield informer


@pytest.fixture(params=["served", "refused"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[ModelServer]:
    async with ModelServer(watch_lists=request.param) as server:
        yield server


@pytest.fixture
async def old_server() -> AsyncIterator[ModelServer]:
    """One whose informers list before they watch."""
    async with ModelServer(watch_lists="refused") as server:
        yield server


def told(event: InformerEvent[Node]) -> str:
    """An event as `+a`, `~a`, `-a` or `=` for a complete list."""
    match event:
        case Added(key=key):
            return f"+{key.name}"
        case Modified(key=key):
            return f"~{key.name}"
        case Deleted(key=key):
            return f"-{key.name}"
        case Synced():
            return "="


async def news(informer: Informer[Node], count: int) -> list[str]:
    async with asyncio.timeout(10):
        return [told(await anext(informer)) for _ in range(count)]


def names(informer: Informer[Node]) -> set[str]:
    return {key.name for key in informer.objects}


async def test_a_list_and_what_changes_after_it(old_server: ModelServer) -> None:
    await old_server.put("a")
    async with following(old_server.url, label_selector="gpu=on", field_selector="x=y") as nodes:
        assert await news(nodes, 2) == ["+a", "="]
        waiting = asyncio.create_task(news(nodes, 3))
        await old_server.watched()
        await old_server.put("b")
        await old_server.put("a", seen="yes")
        await old_server.delete("b")
        assert await waiting == ["+b", "~a", "-b"]
        assert nodes.objects[ObjectKey("", "a")].metadata.annotations == {"seen": "yes"}
    streamed, _, watched = old_server.requests
    assert streamed.query["sendInitialEvents"] == "true"
    for request in old_server.requests:
        assert request.query["labelSelector"] == "gpu=on"
        assert request.query["fieldSelector"] == "x=y"
    assert watched.query["allowWatchBookmarks"] == "true"
    assert 290 <= int(watched.query["timeoutSeconds"]) <= 600


async def test_an_empty_list_is_told_too(server: ModelServer) -> None:
    async with following(server.url) as nodes:
        assert await news(nodes, 1) == ["="]


async def test_a_clean_end_resumes_from_the_bookmark(server: ModelServer) -> None:
    async with following(server.url) as nodes:
        waiting = asyncio.create_task(news(nodes, 2))
        await server.watched()
        await server.bookmark()
        server.end_watches()
        await server.watched(2)
        await server.put("a")
        assert await waiting == ["=", "+a"]
    assert server.versions_watched_from()[-1] == "11"
    assert server.lists() == 1


async def test_a_reset_resumes_from_the_last_event(server: ModelServer) -> None:
    async with following(server.url) as nodes:
        await news(nodes, 1)
        waiting = asyncio.create_task(news(nodes, 2))
        await server.watched()
        await server.put("a")
        await until(lambda: names(nodes) == {"a"})
        server.reset_watches()
        await server.put("b")
        assert await waiting == ["+a", "+b"]
    assert server.versions_watched_from()[-1] == "11"
    assert server.lists() == 1


@pytest.mark.parametrize("answers", [[], [EXPIRED]], ids=["in the stream", "of HTTP"])
async def test_a_410_lists_again_and_tells_the_missed_deletions(
    server: ModelServer, answers: list[Answer]
) -> None:
    for name in ("kept", "lost", "remade"):
        await server.put(name)
    async with following(server.url) as nodes:
        assert await news(nodes, 4) == ["+kept", "+lost", "+remade", "="]
        waiting = asyncio.create_task(news(nodes, 4))
        await server.watched()
        server.watch_answers += answers
        server.reset_watches()
        for name in ("lost", "remade"):
            await server.delete(name)
        await server.put("remade")
        server.compact()
        assert await waiting == ["-lost", "-remade", "+remade", "="]
        assert names(nodes) == {"kept", "remade"}


async def test_a_version_from_the_future_lists_again(old_server: ModelServer) -> None:
    too_large = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large"}]}
    old_server.watch_answers.append(Answer(504, "Timeout", details=too_large))
    async with following(old_server.url) as nodes:
        assert await news(nodes, 2) == ["=", "="]


@pytest.mark.parametrize("code", [500, 503])
async def test_server_errors_are_tried_again_from_the_same_version(
    server: ModelServer, code: int
) -> None:
    server.list_answers += [Answer(code), Answer(code)]
    server.watch_answers += [Answer(code), Answer(code)]
    async with following(server.url) as nodes:
        waiting = asyncio.create_task(news(nodes, 2))
        await server.watched(3)
        await server.put("a")
        assert await waiting == ["=", "+a"]
    assert server.lists() == 3
    assert server.versions_watched_from() == ["10", "10", "10"]


async def test_too_many_requests_waits_as_long_as_the_server_says(server: ModelServer) -> None:
    server.list_answers.append(Answer(429, "TooManyRequests", headers={"Retry-After": "1"}))
    async with following(server.url) as nodes:
        asked_at_s = time.monotonic()
        await news(nodes, 1)
        assert time.monotonic() - asked_at_s >= 1


async def test_an_event_of_a_megabyte_in_many_pieces(server: ModelServer) -> None:
    async with following(server.url) as nodes:
        waiting = asyncio.create_task(news(nodes, 4))
        await server.watched()
        await server.put("big", note="x" * 1_400_000)
        await server.put("slow", pieces=500, note="y" * 2_000)
        await server.put("big", note="z" * 500_000)
        assert await waiting == ["=", "+big", "+slow", "~big"]
        assert len(nodes.objects[ObjectKey("", "big")].metadata.annotations["note"]) == 500_000


async def test_a_server_that_is_not_there_yet(unused_tcp_port: int) -> None:
    async with following(f"http://127.0.0.1:{unused_tcp_port}") as nodes:
        waiting = asyncio.create_task(news(nodes, 1))
        await until(lambda: isinstance(nodes.failure, Unreachable))
        async with ModelServer(port=unused_tcp_port):
            assert await waiting == ["="]
            assert nodes.failure is None


async def test_a_refusal_is_kept_to_be_shown_and_tried_again(old_server: ModelServer) -> None:
    message = 'nodes is forbidden: User "x" cannot list resource "nodes"'
    old_server.list_answers.append(Answer(403, "Forbidden", message=message))
    async with following(old_server.url) as nodes:
        waiting = asyncio.create_task(news(nodes, 1))
        await until(lambda: nodes.failure is not None)
        assert isinstance(nodes.failure, Forbidden)
        assert str(nodes.failure) == (
            f"list /api/v1/nodes: {message} (403 Forbidden); grant it with RBAC"
        )
        assert await waiting == ["="]


async def test_a_wait_that_is_cancelled_loses_nothing(server: ModelServer) -> None:
    async with following(server.url) as nodes:
        await news(nodes, 1)
        for name in ("a", "b"):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await anext(nodes)
            await server.put(name)
            assert await news(nodes, 1) == [f"+{name}"]
        assert server.watches_opened == 1


async def test_one_object_that_is_not_understood_does_not_stop_the_others(
    server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    strange = await server.put("strange")
    strange["metadata"]["annotations"] = ["not", "a", "map"]
    async with following(server.url) as nodes:
        assert await news(nodes, 1) == ["="]
        waiting = asyncio.create_task(news(nodes, 1))
        await server.watched()
        await server.send("MODIFIED", strange)
        await server.put("a")
        assert await waiting == ["+a"]
    lines = [r for r in caplog.records if r.message == "kube.object_not_understood"]
    assert len(lines) == 2
    assert vars(lines[0])["object"] == "/strange"


@pytest.mark.parametrize(
    "line", [b"<html>\n", b'{"type":"ADDED"}\n', b'{"type":"ADDED","object":1}\n']
)
async def test_a_stream_that_is_no_watch_is_left_and_opened_again(
    server: ModelServer, line: bytes
) -> None:
    async with following(server.url) as nodes:
        waiting = asyncio.create_task(news(nodes, 2))
        await server.watched()
        await server.watches[0].response.write(line)
        await server.watched(2)
        await server.put("a")
        assert await waiting == ["=", "+a"]


async def test_a_server_that_is_behind_our_version_is_found_by_its_silence(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_watch, "BOOKMARK_OVERDUE_S", 0.0)
    server.version = 1000
    async with following(server.url) as nodes:
        waiting = asyncio.create_task(news(nodes, 3))
        await server.watched()
        server.version = 10  # a backup was restored
        await server.put("a")
        server.end_watches()
        assert await waiting == ["=", "+a", "="]


async def test_half_an_event_before_the_end_says_nothing(server: ModelServer) -> None:
    async with following(server.url) as nodes:
        waiting = asyncio.create_task(news(nodes, 2))
        await server.watched()
        await server.watches[0].response.write(b'{"type":"ADDED","object":{"meta')
        server.end_watches()
        await server.watched(2)
        await server.put("a")
        assert await waiting == ["=", "+a"]


@pytest.mark.parametrize("misbehaviour", ["ends at once", "410 at once"])
async def test_a_server_that_spoils_every_watch_is_not_hammered(
    old_server: ModelServer, misbehaviour: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "casaba.kube.watching")
    code = 200 if misbehaviour == "ends at once" else 410
    old_server.watch_answers += [Answer(code, headers={"Connection": "close"})] * 1000
    async with following(old_server.url) as nodes:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(drained(nodes), 0.5)
    assert 3 < old_server.watches_opened < 40


async def test_a_streamed_list_is_told_as_one_and_goes_on_as_its_watch() -> None:
    async with ModelServer(watch_lists="served") as server:
        for name in ("a", "b"):
            await server.put(name)
        async with following(server.url) as nodes:
            assert await news(nodes, 3) == ["+a", "+b", "="]
            assert nodes.resource_version == "12"
            await server.put("c")
            assert await news(nodes, 1) == ["+c"]
        assert len(server.requests) == 1


@pytest.mark.parametrize("busy", [False, True])
async def test_a_server_that_does_not_know_of_streamed_lists_is_listed_in_time(
    busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_watch, "INITIAL_SILENCE_S", 0.1)
    monkeypatch.setattr(open_watch, "INITIAL_LIMIT_S", 0.3)
    async with ModelServer(watch_lists="unknown") as server:
        await server.put("a")
        async with following(server.url) as nodes, asyncio.TaskGroup() as group:
            changing = group.create_task(changed_for_ever(server)) if busy else None
            assert await news(nodes, 2) == ["+a", "="]
            assert nodes.failure is None
            if changing:
                changing.cancel()
        assert server.lists() == 1


async def changed_for_ever(server: ModelServer) -> None:
    while True:
        await server.put("a")
        await asyncio.sleep(0.02)


async def test_a_plain_bookmark_in_a_streamed_list_shows_that_it_is_none() -> None:
    async with ModelServer(watch_lists="unknown") as server:
        await server.put("a")
        async with following(server.url) as nodes:
            waiting = asyncio.create_task(news(nodes, 2))
            await server.watched()
            await server.bookmark()
            assert await waiting == ["+a", "="]


async def test_objects_are_found_by_what_is_in_them(server: ModelServer) -> None:
    def colours(node: Node) -> tuple[str, ...]:
        return tuple(node.metadata.annotations.get("colours", "").split())

    def found(colour: str) -> list[str]:
        return [node.metadata.name for node in nodes.by_index("colour", colour)]

    await server.put("a", colours="red green")
    await server.put("b", colours="red")
    async with KubeClient(KubeConfig(origin="test", server=server.url)) as client:
        async with Informer(client, NODES, indexes={"colour": colours}) as nodes:
            await news(nodes, 3)
            assert (found("red"), found("green"), found("blue")) == (["a", "b"], ["a"], [])
            waiting = asyncio.create_task(news(nodes, 2))
            await server.watched()
            await server.put("a", colours="blue")
            await server.delete("b")
            await waiting
            assert (found("red"), found("green"), found("blue")) == ([], [], ["a"])
            with pytest.raises(KeyError):
                nodes.by_index("shape", "round")


async def drained(nodes: Informer[Node]) -> None:
    async for _ in nodes:
        pass


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - any condition, not only events
            await asyncio.sleep(0.005)
