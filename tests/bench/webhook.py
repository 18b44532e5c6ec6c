"""The webhook at work: how late its answers are, how many it gives, and what it holds in memory.

API server, webhook, a server that does nothing, and the clients are processes on one machine.
Reviews go to both servers in turn, so that whatever else the machine does meets both.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casaba.kube import DEVICE_CLASSES, RESOURCE_SLICES, KubeClient, load_config
from casaba.model.ids import NodeName
from casaba.policy.slices import slice_spec
from casaba.settings.host_paths import DRIVER_NAME
from tests.bench.figures import Figure, percentile
from tests.component.webhook.certificates import LOOPBACK, Authority, SecretVolume
from tests.unit.values import A10

FIGURES = ("webhook_p99", "webhook_p99_floors", "webhook_rps", "webhook_pss")

_START_S = 30.0
_RATE_PER_S = 100
_ROUNDS = 9
"""The median of the rounds counts: others take what they like of the machine."""
_ROUND_REVIEWS = 400
_FLOOD_CONNECTIONS = 16
_FLOOD_S = 5.0
_REVIEW_BYTES = 10_000
_FEWEST_RPS = 500.0
_PODS = 64
_AMOUNTS = 8
"""Pods differ, as those of several jobs do; so many different amounts of memory are asked for."""


def measure() -> Iterator[Figure]:
    """All figures of the webhook."""
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_measured(Path(folder)))


async def _measured(folder: Path) -> list[Figure]:
    authority, volume = Authority(), SecretVolume(folder / "tls")
    volume.put(authority.pair(), authority.pem)
    kubeconfig = folder / "kubeconfig"
    async with (
        _api_server(kubeconfig),
        _webhook(kubeconfig, volume.folder) as webhook,
        _program("null_tls_server", str(volume.folder)) as null,
    ):
        context = authority.client_context()
        ours = _Target(webhook.port, context, answer=b'"patch":')
        floor = _Target(null.port, context, answer=b'"allowed":true')
        rounds = [await _round(ours, floor) for _ in range(_ROUNDS + 1)][1:]  # one to warm up
        rps = await _flood(ours)
        pss = _pss_mib(webhook.pid)
    p99 = statistics.median(own for own, _ in rounds)
    floors = statistics.median(own / floor for own, floor in rounds)
    return [
        Figure(name="webhook_p99", value=p99, unit="ms", bound=10),
        Figure(name="webhook_p99_floors", value=floors, unit="ratio", bound=1.5),
        Figure(name="webhook_rps", value=rps, unit="1/s", bound=_FEWEST_RPS, better="higher"),
        Figure(name="webhook_pss", value=pss, unit="MiB", bound=60),
    ]


@dataclass(frozen=True)
class _Served:
    pid: int
    port: int


@dataclass
class _Target:
    """Connections that are kept, and the milliseconds that answers took."""

    port: int
    context: ssl.SSLContext
    answer: bytes
    """What is in each."""
    idle: list[_Connection] = field(default_factory=list)
    taken_ms: list[float] = field(default_factory=list)

    async def ask(self) -> None:
        """One review; a connection is opened if all are busy."""
        connection = self.idle.pop() if self.idle else await self.connection()
        began_s = time.perf_counter()
        await connection.ask()
        self.taken_ms.append((time.perf_counter() - began_s) * 1e3)
        self.idle.append(connection)

    async def connection(self) -> _Connection:
        """A new one."""
        streams = await asyncio.open_connection(
            LOOPBACK, self.port, ssl=self.context, server_hostname=LOOPBACK
        )
        return _Connection(*streams, self.answer)


class _Connection:
    """HTTP with the least that a client can do."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer

    async def ask(self) -> None:
        """Post the review and read the answer."""
        self._writer.write(next(_REQUESTS))
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(f"the server answers {head[:40]!r}")
        _, _, rest = head.partition(b"content-length: ")
        body = await self._reader.readexactly(int(rest.partition(b"\r\n")[0]))
        if self._answer not in body:
            raise RuntimeError(f"the webhook answers {body[:300]!r}")


async def _round(ours: _Target, floor: _Target) -> tuple[float, float]:
    """The 99th percentiles of some seconds at a fixed rate, whether or not answers are back."""
    ours.taken_ms.clear()
    floor.taken_ms.clear()
    next_s = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(_ROUND_REVIEWS):
            for target in (ours, floor):
                group.create_task(target.ask())
                next_s += 0.5 / _RATE_PER_S
                await asyncio.sleep(next_s - time.perf_counter())
    return percentile(ours.taken_ms, 99), percentile(floor.taken_ms, 99)


async def _flood(target: _Target) -> float:
    """Answers a second when each connection asks again at once."""
    end_s = time.perf_counter() + _FLOOD_S

    async def keep_asking() -> int:
        connection, count = await target.connection(), 0
        while time.perf_counter() < end_s:
            await connection.ask()
            count += 1
        return count

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(keep_asking()) for _ in range(_FLOOD_CONNECTIONS)]
    return sum(task.result() for task in tasks) / _FLOOD_S


@asynccontextmanager
async def _api_server(kubeconfig: Path) -> AsyncIterator[None]:
    """With a card and our class."""
    command = [sys.executable, "-m", "casaba.simulation.api_server", str(kubeconfig)]
    async with _running(command, stdout=asyncio.subprocess.PIPE) as server:
        assert server.stdout
        await asyncio.wait_for(server.stdout.readline(), _START_S)  # says that it serves
        async with KubeClient(load_config(kubeconfig)) as client:
            spec = slice_spec(NodeName("edge-1"), (A10,), 1)
            await client.create(RESOURCE_SLICES, {"metadata": {"name": "cards"}, "spec": spec})
            await client.create(DEVICE_CLASSES, {"metadata": {"name": DRIVER_NAME}, "spec": {}})
        yield


@asynccontextmanager
async def _webhook(kubeconfig: Path, certificates: Path) -> AsyncIterator[_Served]:
    """Ready."""
    command = [
        *(sys.executable, "-c", _START_WEBHOOK, "--kubeconfig", str(kubeconfig)),
        *("--certificate-dir", str(certificates), "--drain", "0"),
        *("--address", f"{LOOPBACK}:0", "--metrics-address", f"{LOOPBACK}:0"),
    ]
    async with _running(command, stderr=asyncio.subprocess.PIPE) as process:
        assert process.stderr
        entry: dict[str, Any] = {}
        while entry.get("event") != "webhook.ready":
            entry = json.loads(await asyncio.wait_for(process.stderr.readline(), _START_S))
        yield _Served(process.pid, entry["port"])


@asynccontextmanager
async def _program(name: str, *arguments: str) -> AsyncIterator[_Served]:
    command = [sys.executable, "-m", f"tests.bench.programs.{name}", *arguments]
    async with _running(command, stdout=asyncio.subprocess.PIPE) as process:
        assert process.stdout
        line = await asyncio.wait_for(process.stdout.readline(), _START_S)
        yield _Served(process.pid, int(line))


@asynccontextmanager
async def _running(command: list[str], **pipes: Any) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(*command, **pipes)
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


def _pss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    (kib,) = (int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kib / 1024


_START_WEBHOOK = "import sys; from casaba.cli.webhook import main; sys.exit(main(sys.argv[1:]))"


def _review(number: int) -> bytes:
    """Of a classic pod as a controller makes it, filled up to the size by what nobody reads."""
    memory = str(1024 * (number % _AMOUNTS + 1))
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory, "nvidia.com/gpucores": "30"}
    variables = [{"name": f"VARIABLE_{index}", "value": f"{number}"} for index in range(30)]
    volumes = [{"name": f"v-{index}", "configMap": {"name": "c"}} for index in range(10)]
    mounts = [{"name": it["name"], "mountPath": f"/mnt/{it['name']}"} for it in volumes]
    container = {
        "name": "main",
        "image": "registry.example/inference:1.2.3",
        "command": ["python", "-m", "serve"],
        "env": variables,
        "resources": {"limits": limits, "requests": limits},
        "volumeMounts": mounts,
    }
    fields: dict[str, Any] = {}
    pod = {
        "metadata": {
            "generateName": "inference-6d4b75cb6d-",
            "labels": {"app": "inference", "apps.kubernetes.io/pod-index": f"{number}"},
            "managedFields": [{"manager": "kube-controller-manager", "fieldsV1": fields}],
        },
        "spec": {"containers": [container], "volumes": volumes},
    }
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    while len(json.dumps(review)) < _REVIEW_BYTES:
        fields[f"f:field-{len(fields)}"] = {"f:name": {}, "f:value": {".": {}}}
    return json.dumps(review).encode()


def _request(body: bytes) -> bytes:
    return (
        b"POST /mutate?timeout=10s HTTP/1.1\r\nHost: webhook\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )


_REQUESTS = itertools.cycle([_request(_review(number)) for number in range(_PODS)])
