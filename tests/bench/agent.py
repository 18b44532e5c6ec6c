"""The node agent on the real cluster: how fast it prepares, what it costs while idle.

The client is grpcio on the agent's own socket; claims carry an allocation written by hand.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc.aio

from casaba.wire._proto import dra_v1_pb2
from tests.bench.claims import DRIVER, NAMESPACE, WrittenClaim, delete_claims, write_claims
from tests.bench.figures import Figure, percentile
from tests.cluster.bed import Bed, gpu_node, up
from tests.cluster.settings import BedSettings, default_state

_NAME = "casababench"
_CALLS = 100
_IDLE_CLAIMS = 20
_IDLE_S = 60.0
_SOCKET_TIMEOUT_S = 30.0
_CALL_TIMEOUT_S = 45.0  # the kubelet's


class DraSocket:
    """The agent's socket as the kubelet uses it: one connection for all calls."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def prepare(self, claim: WrittenClaim) -> str:
        """NodePrepareResources; the error of the claim, empty if it is prepared."""
        answer = await self._call("Prepare", claim)
        return str(answer.claims[claim.uid].error)

    async def unprepare(self, claim: WrittenClaim) -> str:
        """NodeUnprepareResources; the error of the claim."""
        answer = await self._call("Unprepare", claim)
        return str(answer.claims[claim.uid].error)

    async def _call(self, verb: str, claim: WrittenClaim):  # type: ignore[no-untyped-def]
        request = getattr(dra_v1_pb2, f"Node{verb}ResourcesRequest")()
        request.claims.add(namespace=NAMESPACE, name=claim.name, uid=claim.uid)
        call = self._channel.unary_unary(
            f"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/Node{verb}Resources",
            request_serializer=type(request).SerializeToString,
            response_deserializer=getattr(dra_v1_pb2, f"Node{verb}ResourcesResponse").FromString,
        )
        return await call(request, timeout=_CALL_TIMEOUT_S)


@contextmanager
def one_node_bed() -> Iterator[Bed]:
    """A bed with one GPU node and its agent, for this bench alone."""
    settings = BedSettings(
        name=_NAME, state=default_state(_NAME), nodes=(gpu_node(1, "bench-1"),), agent=True
    )
    bed = up(settings)
    try:
        yield bed
    finally:
        bed.down()


def measure() -> Iterator[Figure]:
    """All figures of the agent, on one bed."""
    with one_node_bed() as bed:
        socket = bed.node("bench-1").path(f"/var/lib/kubelet/plugins/{DRIVER}/dra.sock")
        _wait_for(socket)
        yield from asyncio.run(_prepare_figures(bed, socket))
        yield from asyncio.run(_idle_figures(bed, socket))


def _wait_for(socket: Path) -> None:
    deadline = time.monotonic() + _SOCKET_TIMEOUT_S
    while not socket.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the agent did not serve {socket}")
        time.sleep(0.05)


async def _prepare_figures(bed: Bed, path: Path) -> list[Figure]:
    names = [f"bench-{number}" for number in range(_CALLS)]
    claims = await write_claims(bed.kubeconfig, "bench-1", names)
    async with grpc.aio.insecure_channel(f"unix://{path}") as channel:
        socket = DraSocket(channel)
        one_by_one = [await _timed(socket, claim) for claim in claims]
        await _unprepare_all(socket, claims)
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(socket.prepare(claim)) for claim in claims]
        at_once_s = time.perf_counter() - started
        failures = sum(bool(task.result()) for task in tasks)
        await _unprepare_all(socket, claims)
    await delete_claims(bed.kubeconfig, claims)
    return [
        Figure(name="prepare_p50", value=percentile(one_by_one, 50), unit="ms", bound=5),
        Figure(name="prepare_p99", value=percentile(one_by_one, 99), unit="ms", bound=15),
        Figure(name="prepare_100_at_once_s", value=at_once_s, unit="s", bound=2),
        Figure(name="prepare_100_failures", value=failures, unit="calls", bound=0),
    ]


async def _timed(socket: DraSocket, claim: WrittenClaim) -> float:
    started = time.perf_counter()
    error = await socket.prepare(claim)
    elapsed_ms = (time.perf_counter() - started) * 1000
    if error:
        raise RuntimeError(error)
    return elapsed_ms


async def _unprepare_all(socket: DraSocket, claims: Sequence[WrittenClaim]) -> None:
    for claim in claims:
        if error := await socket.unprepare(claim):
            raise RuntimeError(error)


async def _idle_figures(bed: Bed, path: Path) -> list[Figure]:
    names = [f"idle-{number}" for number in range(_IDLE_CLAIMS)]
    claims = await write_claims(bed.kubeconfig, "bench-1", names)
    pid = bed.node("bench-1").pid("agent")
    if pid is None:
        raise RuntimeError("the agent does not run")
    async with grpc.aio.insecure_channel(f"unix://{path}") as channel:
        for claim in claims:
            await _timed(DraSocket(channel), claim)
    before_s = _cpu_s(pid)
    await asyncio.sleep(_IDLE_S)
    millicores = (_cpu_s(pid) - before_s) / _IDLE_S * 1000
    return [
        Figure(name="agent_pss", value=_pss_mib(pid), unit="MiB", bound=60),
        Figure(name="agent_idle_cpu", value=millicores, unit="millicores", bound=3),
    ]


def _cpu_s(pid: int) -> float:
    """User and system time of a process, proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    (kib,) = (int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kib / 1024
