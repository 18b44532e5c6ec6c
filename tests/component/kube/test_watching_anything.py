"""Whatever happens on the server and to the connection, the informer ends up with the truth."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casaba.aiokit import Backoff
from casaba.kube import (
    NODES,
    Added,
    Deleted,
    Informer,
    InformerEvent,
    KubeClient,
    KubeConfig,
    Modified,
    Synced,
)
from casaba.wire.kubernetes import Node
from tests.component.kube.model_server import EXPIRED, Answer, ModelServer, WatchLists

Step = tuple[str, str]

OF_OBJECTS = st.tuples(st.sampled_from(["put", "put", "delete"]), st.sampled_from("abc"))
OF_CONTACT = st.sampled_from(["end", "reset", "bookmark", "503", "410", "429"])
STEPS = st.lists(
    OF_OBJECTS | st.tuples(OF_CONTACT | st.sampled_from(["compact", "settle"]), st.just("")),
    min_size=10,
    max_size=40,
)


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    log = logging.getLogger("casaba.kube")
    before = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(before)


@pytest.mark.timeout(60)
@settings(max_examples=40)
@given(steps=STEPS, watch_lists=st.sampled_from(["served", "refused"]))
def test_the_cache_equals_the_server_and_every_change_is_told_once(
    steps: list[Step], watch_lists: WatchLists
) -> None:
    asyncio.run(played(steps, watch_lists))


async def played(steps: list[Step], watch_lists: WatchLists) -> None:
    told: list[InformerEvent[Node]] = []
    async with ModelServer(watch_lists=watch_lists) as server:
        async with KubeClient(KubeConfig(origin="test", server=server.url)) as client:
            backoff = Backoff(first_s=0.001, limit_s=0.01)
            indexes = {"uid": by_uid}
            async with Informer(client, NODES, indexes=indexes, backoff=backoff) as nodes:
                listener = asyncio.create_task(listened(nodes, told))
                await server.watched()
                for step in steps:
                    await taken(step, server, nodes)
                await settled(server, nodes)
                listener.cancel()
                await asyncio.wait([listener])
                assert_the_index_is_right(nodes, told)
    assert_versions_only_go_forward(told)
    assert_lives_are_whole(told, alive={o["metadata"]["uid"] for o in server.objects.values()})


def by_uid(node: Node) -> tuple[str, ...]:
    return (node.metadata.uid,)


def assert_the_index_is_right(nodes: Informer[Node], told: list[InformerEvent[Node]]) -> None:
    uids = {event.object.metadata.uid for event in told if not isinstance(event, Synced)}
    found = [node for uid in uids for node in nodes.by_index("uid", uid)]
    assert sorted(n.metadata.name for n in found) == sorted(k.name for k in nodes.objects)


async def listened(nodes: Informer[Node], told: list[InformerEvent[Node]]) -> None:
    async for event in nodes:
        told.append(event)


async def taken(step: Step, server: ModelServer, nodes: Informer[Node]) -> None:
    kind, name = step
    simple: dict[str, Callable[[], None]] = {
        "end": server.end_watches,
        "reset": server.reset_watches,
        "compact": server.compact,
        "503": lambda: server.watch_answers.append(Answer(503)),
        "410": lambda: server.watch_answers.append(EXPIRED),
        "429": lambda: server.list_answers.append(Answer(429)),
    }
    waiting: dict[str, Callable[[], Awaitable[object]]] = {
        "put": lambda: server.put(name),
        "bookmark": server.bookmark,
        "settle": lambda: settled(server, nodes),
    }
    if kind in simple:
        simple[kind]()
    elif kind in waiting:
        await waiting[kind]()
    elif name in server.objects:
        await server.delete(name)


async def settled(server: ModelServer, nodes: Informer[Node]) -> None:
    async with asyncio.timeout(5):
        while cached(nodes) != held(server):  # noqa: ASYNC110 - no event tells this
            await asyncio.sleep(0.002)


def cached(nodes: Informer[Node]) -> dict[str, tuple[str, str]]:
    metadata = [node.metadata for node in nodes.objects.values()]
    return {m.name: (m.uid, m.resource_version) for m in metadata}


def held(server: ModelServer) -> dict[str, tuple[str, str]]:
    metadata = [object_["metadata"] for object_ in server.objects.values()]
    return {m["name"]: (m["uid"], m["resourceVersion"]) for m in metadata}


def assert_versions_only_go_forward(told: list[InformerEvent[Node]]) -> None:
    reached: dict[str, int] = {}
    for event in told:
        if isinstance(event, Added | Modified):
            version = int(event.object.metadata.resource_version)
            assert version > reached.get(event.object.metadata.uid, 0)
            reached[event.object.metadata.uid] = version


def assert_lives_are_whole(told: list[InformerEvent[Node]], alive: set[str]) -> None:
    added = Counter(e.object.metadata.uid for e in told if isinstance(e, Added))
    deleted = Counter(e.object.metadata.uid for e in told if isinstance(e, Deleted))
    assert set(added.values()) <= {1}
    assert set(deleted.values()) <= {1}
    assert added.keys() - deleted.keys() == alive
    assert deleted.keys() <= added.keys()
