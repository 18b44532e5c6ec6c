"""An informer whose every event is kept, and what must be true of them."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from casaba.aiokit import Backoff
from casaba.kube import (
    CONFIG_MAPS,
    Added,
    Deleted,
    Informer,
    InformerEvent,
    KubeClient,
    KubeConfig,
    Modified,
    NotFound,
    Synced,
)
from casaba.kube.resources import Object
from casaba.wire.kubernetes import ObjectMeta, Wire
from tests.conformance.client.door import ServerUnderTest

SETTLED_WITHIN_S = 60.0
DELETED_WITHIN_S = 240.0
"""A real server deletes a collection one by one."""

NAMESPACE = "default"


class Thing(Wire, frozen=True):
    """A ConfigMap, in short."""

    metadata: ObjectMeta
    data: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it


THINGS = CONFIG_MAPS.decoded_as(Thing)


@dataclass
class Scene:
    """One server, an administrator beside all links, and objects that no other test has."""

    server: ServerUnderTest
    admin: KubeClient
    run: str = field(default_factory=lambda: f"survival-{secrets.token_hex(4)}")

    @property
    def selector(self) -> str:
        """Chooses the objects of this scene."""
        return f"run={self.run}"

    def thing(self, name: str, text: str = "") -> Object:
        """An object of this scene."""
        metadata = {
            "name": f"{self.run}-{name}",
            "namespace": NAMESPACE,
            "labels": {"run": self.run},
        }
        return {"metadata": metadata, "data": {"text": text}}

    async def put(self, *names: str) -> None:
        """Create or change some."""
        await self.server.put([self.thing(name, secrets.token_hex(8)) for name in names])

    async def delete(self, name: str) -> None:
        """Delete one, if it is there."""
        try:
            await self.admin.delete(CONFIG_MAPS, f"{self.run}-{name}", namespace=NAMESPACE)
        except NotFound:
            return

    async def delete_all(self) -> None:
        """Delete all of this scene."""
        await self.admin.delete_collection(
            CONFIG_MAPS, namespace=NAMESPACE, label_selector=self.selector
        )

    async def held(self) -> dict[str, tuple[str, str]]:
        """UID and version of each, by name, as the server says."""
        listed = await self.admin.list(THINGS, namespace=NAMESPACE, label_selector=self.selector)
        return dict(described(listed.items))


@dataclass
class Following:
    """An informer and all that it told."""

    scene: Scene
    informer: Informer[Thing]
    told: list[InformerEvent[Thing]] = field(default_factory=list)

    async def listen(self) -> None:
        """Note every event, for ever."""
        async for event in self.informer:
            self.told.append(event)

    def cached(self) -> dict[str, tuple[str, str]]:
        """UID and version of each, by name, as the informer says."""
        return dict(described(self.informer.objects.values()))

    async def settled(self) -> None:
        """Wait until the informer's state is the server's; fails after a minute."""
        held = await self.scene.held()
        async with asyncio.timeout(SETTLED_WITHIN_S):
            while self.cached() != held:  # noqa: ASYNC110 - no event tells this
                await asyncio.sleep(0.005)

    def check(self) -> None:
        """Versions never went back, and every life was told from its begin to its end, once."""
        reached: dict[str, int] = {}
        for event in self.told:
            if isinstance(event, Added | Modified):
                metadata = event.object.metadata
                assert int(metadata.resource_version) > reached.get(metadata.uid, 0)
                reached[metadata.uid] = int(metadata.resource_version)
        added, deleted = self._lives(Added), self._lives(Deleted)
        assert set(added.values()) | set(deleted.values()) <= {1}
        assert deleted.keys() <= added.keys()
        assert added.keys() - deleted.keys() == {uid for uid, _ in self.cached().values()}

    def syncs(self) -> int:
        """How many complete lists were told."""
        return sum(isinstance(event, Synced) for event in self.told)

    def _lives(self, kind: type[Added[Thing]] | type[Deleted[Thing]]) -> Counter[str]:
        events = [event for event in self.told if not isinstance(event, Synced)]
        return Counter(e.object.metadata.uid for e in events if isinstance(e, kind))


@asynccontextmanager
async def scene_at(server: ServerUnderTest) -> AsyncIterator[Scene]:
    """A scene that leaves nothing."""
    async with KubeClient(server.config, request_timeout_s=DELETED_WITHIN_S) as admin:
        scene = Scene(server, admin)
        try:
            yield scene
        finally:
            await scene.delete_all()


@asynccontextmanager
async def followed(scene: Scene, config: KubeConfig) -> AsyncIterator[Following]:
    """An informer of the scene's objects, listened to; checked when the block has gone well."""
    async with KubeClient(config) as client:
        informer = Informer(
            client,
            THINGS,
            namespace=NAMESPACE,
            label_selector=scene.selector,
            backoff=Backoff(first_s=0.005, limit_s=0.2),
        )
        following = Following(scene, informer)
        listening = asyncio.create_task(following.listen())
        try:
            await within(lambda: following.syncs() > 0)
            yield following
            await following.settled()
            following.check()
        finally:
            listening.cancel()
            await asyncio.wait([listening])
            informer.close()


async def within(condition: Callable[[], bool], limit_s: float = 30.0) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 - any condition, not only events
            await asyncio.sleep(0.005)


async def until_true(condition: Callable[[], Awaitable[bool]], limit_s: float = 30.0) -> None:
    """Wait until something that has to be asked for is so."""
    async with asyncio.timeout(limit_s):
        while not await condition():  # noqa: ASYNC110 - nothing tells this
            await asyncio.sleep(0.05)


def described(things: Iterable[Thing]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Name, UID and version of each."""
    for thing in things:
        metadata = thing.metadata
        yield metadata.name, (metadata.uid, metadata.resource_version)
