"""Whatever happens to server, link and identity, the informer ends up with the server's state."""

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casaba.kube import (
    CONFIG_MAPS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Deleted,
    KubeClient,
    KubeConfig,
    Unauthorized,
)
from tests.component.kube.link import Link
from tests.conformance.client.conftest import OpenDoor
from tests.conformance.client.door import as_kubeconfig
from tests.conformance.client.following import (
    NAMESPACE,
    Scene,
    followed,
    scene_at,
    until_true,
    within,
)
from tests.conformance.client.vanishing_link import VanishingLink, vanishing_link

pytestmark = pytest.mark.timeout(300)

MANY = 10_000
RATE_PER_S = 1_000
SECONDS = 3


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "casaba.kube")


@pytest.fixture
async def scene(door: OpenDoor) -> AsyncIterator[Scene]:
    async with door() as server, scene_at(server) as scene:
        yield scene


async def test_compaction_while_it_watches_and_while_it_is_away(scene: Scene) -> None:
    await scene.put("kept", "lost", "remade")
    async with Link(scene.server.config) as link, followed(scene, link.config) as things:
        await scene.server.compact()
        await scene.put("kept")
        await things.settled()
        link.drop()
        await scene.delete("lost")
        await scene.delete("remade")
        await scene.put("remade", "new")
        await scene.server.compact()
        link.mend()
        await things.settled()
        assert things.syncs() >= 2


async def test_a_restarted_server(scene: Scene) -> None:
    await scene.put("a", "b")
    async with followed(scene, scene.server.config) as things:
        for _ in range(2):
            await scene.put("b", "c")
            await scene.server.restart()
            await scene.delete("c")
            await things.settled()


async def test_a_token_that_is_replaced_while_it_watches(scene: Scene, tmp_path: Path) -> None:
    reader = Reader(scene)
    await reader.create()
    file = tmp_path / "token"
    try:
        file.write_text(await reader.token("first"))
        by_file = reader.config(token_file=file)
        stale = reader.config(token=file.read_text())
        async with Link(by_file) as link, followed(scene, link.config) as things:
            await scene.put("a")
            await things.settled()
            new = tmp_path / "new"
            new.write_text(await reader.token("second"))
            new.replace(file)
            await reader.end("first")
            await until_true(lambda: is_refused(stale))
            link.drop()
            await scene.put("b")
            link.mend()
            await things.settled()
            assert things.syncs() == 1
    finally:
        await reader.delete()


class Reader:
    """A service account that may read ConfigMaps; each of its tokens ends with a pod."""

    def __init__(self, scene: Scene) -> None:
        self._admin = scene.admin
        self._name = scene.run

    async def create(self) -> None:
        named = {"metadata": {"name": self._name}}
        rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": self._name}
        subject = {"kind": "ServiceAccount", "name": self._name, "namespace": NAMESPACE}
        create = self._admin.create
        await create(SERVICE_ACCOUNTS, named, namespace=NAMESPACE)
        await create(ROLES, {**named, "rules": [rule]}, namespace=NAMESPACE)
        binding = {**named, "roleRef": role, "subjects": [subject]}
        await create(ROLE_BINDINGS, binding, namespace=NAMESPACE)

    async def token(self, pod: str) -> str:
        name = f"{self._name}-{pod}"
        spec = {
            "schedulerName": "nobody",
            "serviceAccountName": self._name,
            "containers": [{"name": "c", "image": "example.com/none:1"}],
        }
        body = {"metadata": {"name": name}, "spec": spec}
        await self._admin.create(PODS, body, namespace=NAMESPACE)
        bound = {"kind": "Pod", "apiVersion": "v1", "name": name}
        asked = {"spec": {"expirationSeconds": 600, "boundObjectRef": bound}}
        answer = await self._admin.create(
            SERVICE_ACCOUNTS, asked, namespace=NAMESPACE, name=self._name, subresource="token"
        )
        return str(answer["status"]["token"])

    async def end(self, pod: str) -> None:
        await self._admin.delete(PODS, f"{self._name}-{pod}", namespace=NAMESPACE, grace_period_s=0)

    async def delete(self) -> None:
        await self.end("second")
        for resource in (ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS):
            await self._admin.delete(resource, self._name, namespace=NAMESPACE)

    def config(self, *, token: str | None = None, token_file: Path | None = None) -> KubeConfig:
        return replace(
            self._admin.config,
            client_certificate_pem=None,
            client_key_pem=None,
            token=token,
            token_file=token_file,
        )


async def is_refused(config: KubeConfig) -> bool:
    async with KubeClient(config) as client:
        try:
            await client.list(CONFIG_MAPS, namespace=NAMESPACE)
        except Unauthorized:
            return True
        return False


@pytest.fixture
def link_between_namespaces() -> Iterator[VanishingLink]:
    with ExitStack() as stack:
        yield stack.enter_context(vanishing_link())


async def test_a_peer_that_vanishes_is_noticed_and_found_again(
    scene: Scene, link_between_namespaces: VanishingLink, tmp_path: Path
) -> None:
    vanishing = link_between_namespaces
    kubeconfig = tmp_path / "kubeconfig"
    async with Link(scene.server.config, vanishing.listener):
        there = replace(scene.server.config, server=f"https://{vanishing.address}")
        kubeconfig.write_text(as_kubeconfig(there, **{"tls-server-name": "127.0.0.1"}))
        command = [sys.executable, "-m", "tests.conformance.client.follow"]
        process = await asyncio.create_subprocess_exec(
            *vanishing.entering_client,
            *command,
            *(str(kubeconfig), scene.selector),
            stdout=subprocess.PIPE,
            env=vanishing.environment,
        )
        try:
            assert process.stdout is not None
            lines = process.stdout
            assert await next_line(lines) == "Synced"
            await scene.put("before")
            assert await next_line(lines) == f"Added {scene.run}-before"
            vanishing.cut()
            cut_at_s = time.monotonic()
            await scene.put("meanwhile")
            assert await next_line(lines) == "lost"
            assert time.monotonic() - cut_at_s < 10
            vanishing.mend()
            told = {await next_line(lines), await next_line(lines)}
            assert told == {"back", f"Added {scene.run}-meanwhile"}
        finally:
            process.kill()
            await process.wait()


async def next_line(lines: asyncio.StreamReader) -> str:
    async with asyncio.timeout(60):
        return (await lines.readline()).decode().strip()


async def test_ten_thousand_objects_and_a_thousand_events_a_second(scene: Scene) -> None:
    names = [f"{number:05}" for number in range(MANY)]
    await scene.put(*names)
    async with followed(scene, scene.server.config) as things:
        assert len(things.informer.objects) == MANY
        before = len(things.told)
        await put_at_rate(scene, names[: SECONDS * RATE_PER_S])
        await within(lambda: len(things.told) >= before + SECONDS * RATE_PER_S)
        await things.settled()
        before = len(things.told)
        await scene.delete_all()
        await within(lambda: not things.informer.objects)
        await within(lambda: len(things.told) == before + MANY)
        assert all(isinstance(event, Deleted) for event in things.told[before:])
        assert things.syncs() == 1


async def put_at_rate(scene: Scene, names: list[str]) -> None:
    """Change objects, a tenth of a second's worth at a time, or as fast as the machine can."""
    loop = asyncio.get_running_loop()
    tick_s = loop.time()
    portion = RATE_PER_S // 10
    for start in range(0, len(names), portion):
        await scene.put(*names[start : start + portion])
        tick_s += 0.1
        await asyncio.sleep(tick_s - loop.time())


Step = tuple[str, str]

OF_OBJECTS = st.tuples(st.sampled_from(["put", "put", "delete"]), st.sampled_from("abc"))
OF_CONTACT = st.sampled_from(["drop", "drop", "away", "settle"])


def steps(*rare: str) -> st.SearchStrategy[list[Step]]:
    """What happens in one example; what is slow on a real server happens only where it isn't."""
    happenings = OF_CONTACT | st.sampled_from(rare) if rare else OF_CONTACT
    return st.lists(OF_OBJECTS | st.tuples(happenings, st.just("")), min_size=10, max_size=40)


def test_any_history_ends_in_the_servers_state(door: OpenDoor, on_real: bool) -> None:
    happenings = steps() if on_real else steps("compact", "restart")

    @settings(
        max_examples=5 if on_real else 15,
        database=None,
    )
    @given(history=happenings)
    def check(history: list[Step]) -> None:
        asyncio.run(played(history, door))

    check()


async def played(history: list[Step], door: OpenDoor) -> None:
    async with door() as server, scene_at(server) as scene:
        async with Link(server.config) as link, followed(scene, link.config) as things:
            for kind, name in history:
                match kind:
                    case "put":
                        await scene.put(name)
                    case "delete":
                        await scene.delete(name)
                    case "drop":
                        link.drop()
                        link.mend()
                    case "away":
                        link.drop()
                    case "compact":
                        await server.compact()
                    case "restart":
                        await server.restart()
                    case "settle":
                        link.mend()
                        await things.settled()
            link.mend()
