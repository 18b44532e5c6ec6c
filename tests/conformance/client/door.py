"""What the survival suite does to a server: the simulated one, or the real one of the bed."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from casaba.kube import CONFIG_MAPS, AlreadyExists, KubeClient, KubeConfig, load_config
from casaba.kube.resources import Object
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.cluster import control_plane, network
from tests.cluster.bed import Bed
from tests.cluster.settings import CLOUD

_MANY = 50
"""So many objects at once go into etcd itself: the server's own door is too slow for a flood."""

_PUT = """
import base64, http.client, json, sys
from concurrent.futures import ThreadPoolExecutor
def encoded(text):
    return base64.b64encode(text.encode()).decode()
def put(pairs):
    # One revision for each, as the server itself writes: its own memory relies on that.
    etcd = http.client.HTTPConnection("127.0.0.1", 2379, timeout=60)
    for key, value in pairs:
        body = {"key": encoded(key), "value": encoded(json.dumps(value))}
        etcd.request("POST", "/v3/kv/put", json.dumps(body))
        answer = etcd.getresponse()
        text = answer.read()
        assert answer.status == 200, text
    etcd.close()
pool = ThreadPoolExecutor(4)
for line in sys.stdin:
    pairs = list(json.loads(line).items())
    list(pool.map(put, [pairs[start::4] for start in range(4)]))
    print("done", flush=True)
"""
_COMPACT = """
import json, sys, urllib.request
body = json.dumps({"revision": sys.argv[1], "physical": True}).encode()
urllib.request.urlopen("http://127.0.0.1:2379/v3/kv/compaction", body, timeout=20).read()
"""
_READY_WITHIN_S = 60.0


class ServerUnderTest(Protocol):
    """An API server with nothing of the suite's in it."""

    config: KubeConfig
    """Access of one who may do everything."""

    async def put(self, objects: Sequence[Object]) -> None:
        """Create or change ConfigMaps; more than a few must stay in such crowds for life."""

    async def compact(self) -> None:
        """Let no version before now be watched from any more."""

    async def restart(self) -> None:
        """Break all connections; the objects stay."""


class Simulated:
    """The simulated server, in this process."""

    def __init__(self, server: SimulatedApiServer) -> None:
        self._server = server
        self.config = server.admin_config()

    async def put(self, objects: Sequence[Object]) -> None:
        self._server.seed({"apiVersion": "v1", "kind": "ConfigMap", **it} for it in objects)

    async def compact(self) -> None:
        self._server.compact()

    async def restart(self) -> None:
        await self._server.restart()


class Real:
    """The server of a bed."""

    def __init__(self, bed: Bed, client: KubeClient) -> None:
        self._bed = bed
        self._client = client
        self._writer: asyncio.subprocess.Process | None = None
        self.config = client.config

    async def put(self, objects: Sequence[Object]) -> None:
        if len(objects) >= _MANY:
            await self._flood(dict(_in_etcd(object_) for object_ in objects))
            return
        async with asyncio.TaskGroup() as group:
            for object_ in objects:
                group.create_task(self._put(object_))

    async def compact(self) -> None:
        # The server itself remembers what etcd has forgotten, until it starts anew.
        listed = await self._client.list(CONFIG_MAPS, namespace="default")
        command = self._beside_etcd(_COMPACT, listed.resource_version)
        await asyncio.to_thread(subprocess.run, command, check=True, timeout=30)
        await self.restart()

    async def restart(self) -> None:
        await asyncio.to_thread(
            control_plane.restart_api_server, self._bed.settings, self._bed.programs
        )
        async with asyncio.timeout(_READY_WITHIN_S):
            while not await asyncio.to_thread(self._is_ready):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.1)

    async def _flood(self, values: dict[str, Object]) -> None:
        if self._writer is None:
            self._writer = await asyncio.create_subprocess_exec(
                *self._beside_etcd(_PUT), stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        assert self._writer.stdin
        assert self._writer.stdout
        self._writer.stdin.write(json.dumps(values).encode() + b"\n")
        assert await self._writer.stdout.readline() == b"done\n"

    async def close(self) -> None:
        """End what was started."""
        if self._writer is not None:
            self._writer.kill()
            await self._writer.wait()

    def _beside_etcd(self, program: str, *arguments: str) -> list[str]:
        namespace = self._bed.settings.network_namespace(CLOUD)
        return [*network.entering(namespace), sys.executable, "-c", program, *arguments]

    def _is_ready(self) -> bool:
        return self._bed.api.get("/readyz")[0] == 200

    async def _put(self, object_: Object) -> None:
        metadata = object_["metadata"]
        try:
            await self._client.create(CONFIG_MAPS, object_, namespace="default")
        except AlreadyExists:
            await self._client.patch(CONFIG_MAPS, metadata["name"], object_, namespace="default")


def _in_etcd(object_: Object) -> tuple[str, Object]:
    """Key and value in etcd; the server reads JSON where it would have written protobuf."""
    metadata = object_["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    born = {
        "uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    kind = {"kind": "ConfigMap", "apiVersion": "v1"}
    return (
        f"/registry/configmaps/{namespace}/{name}",
        {**kind, **object_, "metadata": {**metadata, **born}},
    )


@asynccontextmanager
async def simulated() -> AsyncIterator[ServerUnderTest]:
    """A fresh simulated server."""
    async with SimulatedApiServer(log_limit=30_000) as server:
        yield Simulated(server)


@asynccontextmanager
async def real(bed: Bed) -> AsyncIterator[ServerUnderTest]:
    """The bed's server, of which others know nothing meanwhile."""
    async with KubeClient(load_config(bed.kubeconfig)) as client:
        door = Real(bed, client)
        try:
            yield door
        finally:
            await door.close()


def as_kubeconfig(config: KubeConfig, **cluster: str) -> str:
    """A file for another process; `cluster` changes what is said of the server."""
    parts = {
        "certificate-authority-data": config.authority_pem,
        "client-certificate-data": config.client_certificate_pem,
        "client-key-data": config.client_key_pem,
    }
    encoded = {key: _base64(value) for key, value in parts.items() if value}
    authority = {"certificate-authority-data": encoded.pop("certificate-authority-data")}
    return json.dumps(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [
                {"name": "k", "cluster": {"server": config.server, **authority, **cluster}}
            ],
            "users": [{"name": "u", "user": encoded}],
        }
    )


def _base64(value: str | bytes) -> str:
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()
