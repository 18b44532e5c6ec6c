"""Runs containers as processes of this machine, each below a shim that ends with us."""

import asyncio
import os
import sys
from asyncio import StreamReader, TaskGroup
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from casaba.errors import CasabaError
from casaba.simulation.kubelet import container_shim
from casaba.simulation.kubelet.cdi_devices import Mount
from casaba.simulation.kubelet.logs import ContainerLog

_READ_BYTES = 64 * 1024
_REPORT_BYTES = 4096


class StartFailed(CasabaError):
    """A container's program could not be started."""


@dataclass(frozen=True, kw_only=True)
class ProcessOrder:
    """What a container runs, and where."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    """Working directory."""
    mounts: tuple[Mount, ...] | None
    """Mounts in a namespace of its own (root only); None: no namespace."""
    scratch: str
    """An empty folder; a root of the namespace's own is made on it where mounts need that."""
    user: int | None = None
    group: int | None = None


class ContainerProcess:
    """A container whose program runs."""

    def __init__(self, shim: Process) -> None:
        self._shim = shim

    def send(self, signal: str) -> None:
        """Send a signal, such as SIGTERM, to the container's process group."""
        if self._shim.stdin is not None:
            with suppress(OSError, RuntimeError):
                self._shim.stdin.write(f"{signal}\n".encode())


async def run_container(
    order: ProcessOrder, log: ContainerLog, started: Callable[[ContainerProcess], None]
) -> int:
    """Run a container to its end; its exit code, 128 + n for a signal n. Raises StartFailed.

    If cancelled: all of its processes have been killed.
    """
    reading, writing = os.pipe()
    try:
        shim = await asyncio.create_subprocess_exec(
            *_shim_command(writing),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            pass_fds=(writing,),
            # What a terminal sends to everybody is the kubelet's to pass on.
            start_new_session=True,
        )
    except OSError as error:
        os.close(reading)
        raise StartFailed(f"can't start {sys.executable}: {error}") from error
    finally:
        os.close(writing)
    try:
        return await _run(shim, order, log, reading, started)
    finally:
        assert shim.stdin is not None
        shim.stdin.close()  # ends the container if it still runs
        await shim.wait()
        log.finish()


def _shim_command(report: int) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", container_shim.__file__, str(report))


async def _run(
    shim: Process,
    order: ProcessOrder,
    log: ContainerLog,
    reading: int,
    started: Callable[[ContainerProcess], None],
) -> int:
    assert shim.stdin is not None
    assert shim.stdout is not None
    assert shim.stderr is not None
    shim.stdin.write(msgspec.json.encode(asdict(order)) + b"\n")
    report = await _report(reading)
    if report.startswith("failed "):
        raise StartFailed(report.removeprefix("failed "))
    started(ContainerProcess(shim))
    async with TaskGroup() as group:
        group.create_task(_copy(shim.stdout, log, "stdout"))
        group.create_task(_copy(shim.stderr, log, "stderr"))
    code = await shim.wait()
    return code if code >= 0 else 128 - code


async def _report(reading: int) -> str:
    """What the shim says of the start; it closes its end afterwards."""
    loop = asyncio.get_running_loop()
    reader = StreamReader()
    with os.fdopen(reading, "rb") as file:
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), file
        )
        try:
            return (await reader.read(_REPORT_BYTES)).decode(errors="replace")
        finally:
            transport.close()


async def _copy(source: StreamReader, log: ContainerLog, stream: str) -> None:
    while received := await source.read(_READ_BYTES):
        log.feed(stream, received)


async def namespaces_work(scratch: Path) -> bool:
    """Whether this process may give containers mount namespaces of their own."""
    if os.geteuid() != 0:
        return False
    mount = Mount(source="/dev/null", target="/etc/casaba-probe", read_only=True)
    order = ProcessOrder(
        command=("/bin/true",), environment={}, folder="/", mounts=(mount,), scratch=str(scratch)
    )
    log = ContainerLog(scratch / "probe.log", _READ_BYTES)
    try:
        return await run_container(order, log, lambda _: None) == 0
    except StartFailed:
        return False
    finally:
        log.remove()
