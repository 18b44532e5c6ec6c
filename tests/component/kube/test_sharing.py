"""Several consumers of one watch: each sees the whole story, the slow ones in short."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.kube import (
    NODES,
    Added,
    Deleted,
    Informer,
    InformerEvent,
    KubeClient,
    KubeConfig,
    Modified,
    ObjectKey,
    SharedInformer,
    Subscription,
    Synced,
    sharing,
)
from casaba.wire.kubernetes import Node
from tests.component.kube.model_server import ModelServer
from tests.component.kube.test_watching import told, until

pytestmark = pytest.mark.timeout(20)


@asynccontextmanager
async def shared(server: ModelServer) -> AsyncIterator[SharedInformer[Node]]:
    async with KubeClient(KubeConfig(origin="test", server=server.url)) as client:
        informer = SharedInformer(Informer(client, NODES))
        running = asyncio.create_task(informer.run())
        try:
            yield informer
        finally:
            running.cancel()
            await asyncio.wait([running])


async def news(events: Subscription[Node], count: int) -> list[str]:
    async with asyncio.timeout(5):
        return [told(await anext(events)) for _ in range(count)]


async def test_each_starts_with_what_is_there_and_then_sees_the_same() -> None:
    async with ModelServer(watch_lists="served") as server:
        await server.put("a")
        async with shared(server) as nodes:
            with nodes.subscribe() as early:
                assert await news(early, 2) == ["+a", "="]
                await server.put("b")
                assert await news(early, 1) == ["+b"]
                with nodes.subscribe() as late:
                    assert await news(late, 3) == ["+a", "+b", "="]
                    await server.delete("a")
                    assert await news(early, 1) == await news(late, 1) == ["-a"]
        assert server.watches_opened == 1


async def test_a_slow_consumer_gets_merged_events_and_the_same_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "QUEUE_LIMIT", 5)
    async with ModelServer(watch_lists="served") as server:
        for name in ("gone", "kept"):
            await server.put(name)
        async with shared(server) as nodes:
            with nodes.subscribe() as slow:
                assert await news(slow, 3) == ["+gone", "+kept", "="]
                await server.delete("gone")
                for _ in range(6):
                    await server.put("kept")
                await until(lambda: version(nodes, "kept") == server.version)
                assert await news(slow, 2) == ["-gone", "~kept"]


def version(nodes: SharedInformer[Node], name: str) -> int:
    return int(nodes.objects[ObjectKey("", name)].metadata.resource_version)


LIVES = st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=20)


@given(steps=LIVES, there=st.sets(st.sampled_from("ab")))
def test_merged_events_lead_to_the_same_objects(
    steps: list[tuple[str, bool]], there: set[str]
) -> None:
    objects = {ObjectKey("", name): f"{name} at first" for name in there}
    before = dict(objects)
    events: list[InformerEvent[str]] = []
    for number, (name, delete) in enumerate(steps):
        key = ObjectKey("", name)
        if delete and key in objects:
            events.append(Deleted(key, objects.pop(key)))
        elif not delete and key in objects:
            events.append(Modified(key, f"{name} {number}", objects[key]))
            objects[key] = f"{name} {number}"
        elif not delete:
            events.append(Added(key, f"{name} {number}"))
            objects[key] = f"{name} {number}"
    short = sharing.merged([*events, Synced("1")])
    assert replayed(before, short) == objects
    assert short[-1] == Synced("1")
    assert len(short) <= 2 * 2 + 1


def replayed(objects: dict[ObjectKey, str], events: list[InformerEvent[str]]) -> object:
    """The objects after the events, each of which must fit to what was there."""
    for event in events:
        match event:
            case Added(key=key, object=it):
                assert key not in objects
                objects[key] = it
            case Modified(key=key, object=it, before=old):
                assert objects[key] == old
                objects[key] = it
            case Deleted(key=key):
                del objects[key]
    return objects
