"""What a scrape of a full node costs: 16 cards with 10 tenants each, all of them used.

The agent's own parts on real files: regions that are read with pread, NVML of the stand-in driver,
a kubelet's socket for its pods, the text of all families. No HTTP, which is aiohttp's.
"""

from __future__ import annotations

import asyncio
import fcntl
import multiprocessing
import os
import statistics
import struct
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from casaba.kube import About, EventRecorder, KubeClient, KubeConfig
from casaba.model.claim import AllocatedClaim, Share
from casaba.model.ids import ClaimUid, DeviceName, RequestName
from casaba.model.limits import CardLimits, Policy
from casaba.model.pod_use import ClaimInUse, PodInUse
from casaba.net.pod_resources import pod_resources_server
from casaba.node.budgets import ensure_budget
from casaba.node.guard_library import native_dir
from casaba.node.nvidia.discovery import discover_gpus
from casaba.services.node_agent.metrics import AgentMetrics
from casaba.services.node_agent.status import AgentStatus
from casaba.services.node_agent.usage import UsageReader
from casaba.settings.host_paths import HostPaths
from casaba.settings.node_agent import NodeAgentSettings
from casaba.simulation.gpu_host import enter_gpu_host, make_gpu_host, virtual_cards
from casaba.wire import _region_layout as layout
from casaba.wire.exposition import render
from casaba.wire.region_file import lock_offset
from tests.bench.figures import Figure

FIGURES = ("scrape_ms",)

_CARDS = 16
_TENANTS = 10
_PROCESSES = 2
_START_TIMEOUT_S = 30.0
_RUNS = 40
_MIB = 1 << 20
_NODE = "bench-1"


def measure() -> Iterator[Figure]:
    """The median of some scrapes."""
    with tempfile.TemporaryDirectory(prefix="casaba-bench-") as folder:
        taken_ms = _scrapes(Path(folder))
    yield Figure(name="scrape_ms", value=statistics.median(taken_ms), unit="ms", bound=20)


def _scrapes(folder: Path) -> list[float]:
    cards_dir = folder / "cards"
    cards_dir.mkdir()
    make_gpu_host(cards_dir, virtual_cards(["A10"] * _CARDS))
    enter_gpu_host(cards_dir)
    settings = NodeAgentSettings(
        node_name=_NODE,
        paths=HostPaths(run_dir=folder / "run", kubelet_dir=folder / "kubelet"),
        driver_root=native_dir() / "simulated_driver",
    )
    gpus = discover_gpus(settings.driver_root, settings.sysfs_root)
    claims = tuple(
        _claim(settings, gpu.uuid, gpu.device_name, number)
        for gpu in gpus
        for number in range(_TENANTS)
    )
    pods = [_pod(claim) for claim in claims]
    regions = [_use(settings.paths.claims_dir / claim.uid / "gpu" / "region") for claim in claims]
    with _kubelet(settings.pod_resources_socket, pods):
        return asyncio.run(
            _timed(UsageReader(settings, lambda: claims, lambda: gpus, _no_pods), regions)
        )


@contextmanager
def _kubelet(socket: Path, pods: list[PodInUse]) -> Iterator[None]:
    """In a process of its own, as a real one: its work is not the scrape's."""
    context = multiprocessing.get_context("fork")
    listens = context.Event()
    process = context.Process(target=lambda: asyncio.run(_serve(socket, pods, listens.set)))
    process.start()
    try:
        assert listens.wait(_START_TIMEOUT_S)
        yield
    finally:
        process.terminate()
        process.join()


async def _serve(socket: Path, pods: list[PodInUse], tell: Callable[[], None]) -> None:
    async with pod_resources_server(socket, lambda: pods):
        tell()
        await asyncio.Event().wait()


async def _no_pods(_: AllocatedClaim) -> dict[str, str]:
    return {}


async def _timed(reader: UsageReader, regions: list[int]) -> list[float]:
    client = KubeClient(KubeConfig(origin="bench", server="http://127.0.0.1:1"))
    status = AgentStatus(
        EventRecorder(client, component="bench"),
        About(api_version="v1", kind="Node", name=_NODE),
    )
    metrics = AgentMetrics(reader, status, node=_NODE, device_count=lambda: _CARDS, legacy=False)
    taken_ms = []
    for run in range(_RUNS):
        for region in regions:
            _write_slots(region, run)
        started = time.perf_counter()
        text = render(await metrics.families())
        taken_ms.append((time.perf_counter() - started) * 1000)
        _check(text.decode().splitlines())
    return taken_ms


def _check(lines: list[str]) -> None:
    """Every tenant is there with all its processes."""
    told = [line for line in lines if line.startswith("casaba_slice_processes{")]
    assert len(told) == _CARDS * _TENANTS
    assert all(line.endswith(f" {_PROCESSES}") for line in told)


def _claim(settings: NodeAgentSettings, gpu: str, device: str, number: int) -> AllocatedClaim:
    """A prepared claim."""
    uid = ClaimUid(str(uuid.uuid4()))
    share = Share(
        request=RequestName("gpu"),
        pool=_NODE,
        device=DeviceName(device),
        share_id=str(uuid.uuid4()),
        memory_bytes=2048 * _MIB,
        cores_percent=10,
    )
    limits = CardLimits(
        gpu=gpu,  # type: ignore[arg-type]
        memory_bytes=share.memory_bytes,
        context_allowance_bytes=512 * _MIB,
        context_size_bytes=256 * _MIB,
        cores_percent=share.cores_percent,
    )
    ensure_budget(settings.paths.claims_dir / uid / "gpu", Policy(cards=(limits,), announce=False))
    return AllocatedClaim(namespace="default", name=f"{device}-{number}", uid=uid, shares=(share,))


def _use(region: Path) -> int:
    """As living guards do; the handle with their locks stays open until this process ends."""
    handle = os.open(region, os.O_RDWR)
    os.pwrite(handle, struct.pack("<I", _PROCESSES), layout.REGION_FILE_HIGH_WATER[0])
    for slot in range(_PROCESSES):
        lock = struct.pack("hh4xqqi4x", fcntl.F_WRLCK, os.SEEK_SET, lock_offset(slot), 1, 0)
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, lock)
    return handle


def _write_slots(region: int, run: int) -> None:
    """No tenant is idle: between two scrapes every word changes."""
    for slot in range(_PROCESSES):
        at = layout.REGION_FILE_SLOTS + slot * layout.REGION_SLOT_BYTES
        first = 100 * (run + 1) + slot
        os.pwrite(region, struct.pack("<10Q", *range(first, first + 10)), at)


def _pod(claim: AllocatedClaim) -> PodInUse:
    use = ClaimInUse(namespace=claim.namespace, name=claim.name, devices=())
    return PodInUse(namespace=claim.namespace, name=claim.name, containers=(("main", (use,)),))
