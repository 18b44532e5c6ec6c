"""A host with virtual cards of its own, for one test."""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml

from tests.native.simulated_driver.cuda import CudaProcess, cuda_process

ROOT = Path(__file__).parents[3]
DRIVER = ROOT / "src/casaba/_native" / platform.machine() / "simulated_driver"
BUILT = ROOT / "build/native"

A10_UUID = "GPU-13e066b9-098c-8932-9d26-ea75a943d6ba"
A10_MIB = 23028
T4_UUID = "GPU-2f1c8de0-5b1e-4c77-9a50-0d3f6b8e7a11"

DRIVER_LINES = "driver_version = 580.126.09\ncuda_version = 13000\n"


def card_lines(
    model: str = "A10", uuid: str = A10_UUID, slot: int = 3, minor: int = 0, **more: int
) -> str:
    """One [card] section; ``more`` is context_mib or memory_mib."""
    lines = [
        "[card]",
        f"model = {model}",
        f"uuid = {uuid}",
        f"bus_id = 00000000:00:{slot:02x}.0",
        f"minor = {minor}",
        *(f"{key} = {value}" for key, value in more.items()),
    ]
    return "\n".join(lines) + "\n"


A10 = card_lines()
T4 = card_lines("T4", T4_UUID, slot=4, minor=1)


@dataclass(frozen=True)
class Busy:
    """Nanoseconds that a card was busy: for each process, by id, ended ones too; as a whole; and
    the time of the account on CLOCK_MONOTONIC."""

    processes_ns: dict[int, int]
    card_ns: int
    now_ns: int


@dataclass(frozen=True)
class Host:
    folder: Path

    def configure(self, text: str) -> None:
        (self.folder / "cards.conf").write_text(text)

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **os.environ,
            "CASABA_SIMULATED_DIR": str(self.folder),
            "LD_LIBRARY_PATH": str(DRIVER),
            "PATH": f"{DRIVER}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            **more,
        }

    def cuda(self, **more: str) -> AbstractContextManager[CudaProcess]:
        return cuda_process(self.environment(**more))

    def work(self, **more: str) -> AbstractContextManager[CudaProcess]:
        """A process that launches: its calls are those of ``work.Work``."""
        return cuda_process(self.environment(**more), "tests.native.simulated_driver.work")

    def busy(self, index: int = 0) -> "Busy":
        """The card's own account of its time."""
        answer = self.run("nvidia-smi", "--busy")
        assert answer.returncode == 0, answer.stderr
        processes, whole, now = {}, 0, 0
        for line in answer.stdout.splitlines()[1:]:
            card, serial, pid, _, busy = line.split(", ")
            if int(card) != index:
                continue
            if serial == "total":
                whole, now = int(busy), int(pid)
            else:
                processes[int(pid)] = int(busy)
        return Busy(processes, whole, now)

    def run(
        self, *command: str | Path, timeout_s: float = 60, **more: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def start(
        self, *command: str | Path, environment: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        """Starts a program with pipes; the caller ends it."""
        return subprocess.Popen(
            command,
            env=self.environment() | dict(environment or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def used_bytes(self, index: int = 0) -> int:
        """The card's own account, as NVML tells it."""
        with nvml():
            return int(pynvml.nvmlDeviceGetMemoryInfo(_card(index)).used)

    def process_bytes(self, index: int = 0) -> dict[int, int]:
        """Bytes of each process on the card, by process id."""
        with nvml():
            processes = pynvml.nvmlDeviceGetComputeRunningProcesses(_card(index))
            return {process.pid: process.usedGpuMemory for process in processes}


@contextmanager
def nvml() -> Iterator[None]:
    """NVML started in this process; pynvml's functions are untyped and used as they are."""
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _card(index: int) -> Any:
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def built(path: Path) -> Path:
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is missing: `make native` builds it, for sanitizers `make test`"
        )
    return path


def sample(name: str) -> Path:
    return built(BUILT / "samples" / name)


def can_make_namespaces() -> bool:
    """Whether this user may have PID and mount namespaces of its own."""
    unshare = shutil.which("unshare")
    command = [str(unshare), "--user", "--map-root-user", "--mount", "--pid", "--fork", "true"]
    return unshare is not None and subprocess.run(command, check=False).returncode == 0
