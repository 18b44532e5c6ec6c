"""Memory under the guard: what it costs, and whether the limit holds while processes are killed."""

from __future__ import annotations

import ctypes
import os
import platform
import random
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.figures import Figure
from tests.native.guard.machine import CARDS, MIB, Machine
from tools import driver_names

FIGURES = (
    "alloc_pair_floors",
    "meminfo_floors",
    "alloc_live_growth",
    "over_limit_bytes",
    "false_refusals",
    "coverage",
)
_ROOT = Path(__file__).parents[2]
_NATIVE = _ROOT / "src" / "casaba" / "_native" / platform.machine()
_PROGRAMS = _ROOT / "build" / "native" / "bench"
_COST_RUNS = 5
_PROCESSES = 16
_OPERATIONS = _PROCESSES * 100_000
_BATCH = 250
_KILL_EVERY_S = 0.02
_LIMIT_MIB = 10240
_CONTEXT_MIB = 64
_ALLOWANCE_MIB = 512


def measure() -> Iterator[Figure]:
    """All figures of this group."""
    yield from _costs()
    bare = run_herd(most_mib=_LIMIT_MIB // 8, context_mib=0, kills=True)
    sized = run_herd(
        most_mib=_LIMIT_MIB // 8, context_mib=_CONTEXT_MIB, kills=True, operations=_OPERATIONS // 4
    )
    over = max(bare.over_limit_bytes, sized.over_limit_bytes)
    yield Figure(name="over_limit_bytes", value=over, unit="B", bound=0)
    fitting = run_herd(most_mib=_LIMIT_MIB // _PROCESSES, context_mib=0, kills=True)
    yield Figure(name="false_refusals", value=fitting.refusals, unit="", bound=0)
    yield Figure(name="coverage", value=coverage(), unit="", bound=1.0, better="higher")


def coverage() -> float:
    """Classed among all names, of the header where that is least."""
    classed = driver_names.classes().keys()
    return min(len(h.names & classed) / len(h.names) for h in driver_names.installed_headers())


@contextmanager
def _machine(driver: Path) -> Iterator[Machine]:
    with tempfile.TemporaryDirectory() as folder:
        yield Machine(Path(folder), driver, _NATIVE / "libcasaba_guard.so")


def _costs() -> Iterator[Figure]:
    runs = [_cost_run() for _ in range(_COST_RUNS)]
    pairs = statistics.median(run["alloc_pair"] / run["floor"] for run in runs)
    infos = statistics.median(run["meminfo"] / run["floor"] for run in runs)
    growth = statistics.median(run["alloc_pair_live"] / run["alloc_pair"] for run in runs)
    yield Figure(name="alloc_pair_floors", value=pairs, unit="floors", bound=12)
    yield Figure(name="meminfo_floors", value=infos, unit="floors", bound=8)
    yield Figure(name="alloc_live_growth", value=growth, unit="", bound=1.5)


def _cost_run() -> dict[str, float]:
    """Nanoseconds that the guard adds, by call."""
    driver = _PROGRAMS / "instant_driver"
    with _machine(driver) as machine:
        machine.budget({CARDS[0]: _LIMIT_MIB * MIB})
        copy = machine.cards_folder / "copy_of_driver.so"
        shutil.copy(driver / "libcuda.so.1", copy)
        command = [str(_PROGRAMS / "memory_costs"), str(copy)]
        environment = machine.environment()
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}


@dataclass(frozen=True)
class HerdResult:
    """What a herd of processes did."""

    operations: int
    killed: int
    refusals: int
    peak_bytes: int  # of the card, by its own account
    allowed_bytes: int

    @property
    def over_limit_bytes(self) -> int:
        """The most that the card ever gave beyond what the budget allows."""
        return max(self.peak_bytes - self.allowed_bytes, 0)


def run_herd(
    *, most_mib: int, context_mib: int, kills: bool, operations: int = _OPERATIONS
) -> HerdResult:
    """Sixteen processes until so many operations are done; each holds `most_mib` at most."""
    allowance_mib = _ALLOWANCE_MIB if context_mib else 0
    with _machine(_NATIVE / "simulated_driver") as machine:
        machine.describe_cards(context_mib=context_mib)
        machine.budget(
            {CARDS[0]: _LIMIT_MIB * MIB},
            allowance=allowance_mib * MIB,
            context_size=context_mib * MIB,
        )
        with _peak_of_card(machine) as peak:
            herd = _Herd(machine, most_mib)
            killed = herd.run(operations, kills=kills)
        return HerdResult(
            operations=herd.operations,
            killed=killed,
            refusals=herd.refusals,
            peak_bytes=peak[0],
            allowed_bytes=(_LIMIT_MIB + allowance_mib) * MIB,
        )


class _Herd:
    def __init__(self, machine: Machine, most_mib: int) -> None:
        self._environment = machine.environment()
        self._most_mib = most_mib
        self._chance = random.Random(20261201)
        self.operations = self.refusals = 0

    def _start(self) -> subprocess.Popen[str]:
        seed = str(self._chance.randrange(1 << 31))
        command = [str(_PROGRAMS / "memory_herd"), seed, str(_BATCH), str(self._most_mib)]
        return subprocess.Popen(
            command,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _gather(self, process: subprocess.Popen[str]) -> None:
        told, complaint = process.communicate()
        if process.returncode == 0:
            done, _, refused, _ = told.split()
            self.operations += int(done)
            self.refusals += int(refused)
        elif process.returncode == 1 and complaint.endswith("cuCtxCreate: 2\n"):
            self.refusals += 1
        elif process.returncode != -9:
            raise RuntimeError(f"memory_herd ended with {process.returncode}: {complaint}")

    def run(self, operations: int, *, kills: bool) -> int:
        """Replace what ends, and kill one now and then; returns how many were killed."""
        members = [self._start() for _ in range(_PROCESSES)]
        killed, next_kill_s = 0, time.monotonic()
        try:
            while self.operations < operations:
                if kills and time.monotonic() > next_kill_s:
                    self._chance.choice(members).kill()
                    killed, next_kill_s = killed + 1, time.monotonic() + _KILL_EVERY_S
                for number, member in enumerate(members):
                    if member.poll() is not None:
                        self._gather(member)
                        members[number] = self._start()
                time.sleep(0.001)
        finally:
            for member in members:
                member.kill()
                member.communicate()
        return killed


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


@contextmanager
def _peak_of_card(machine: Machine) -> Iterator[list[int]]:
    """The most bytes that NVML, past the guard, shows in use: looked at all the time."""
    os.environ["CASABA_SIMULATED_DIR"] = str(machine.cards_folder)
    nvml = ctypes.CDLL(str(machine.driver / "libnvidia-ml.so.1"))
    card, memory, peak, over = ctypes.c_void_p(), _Memory(), [0], threading.Event()
    for result in (
        nvml.nvmlInit_v2(),
        nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card)),
    ):
        if result:
            raise RuntimeError(f"NVML of the virtual card answers {result}")

    def look() -> None:
        while not over.wait(0.0002):
            nvml.nvmlDeviceGetMemoryInfo(card, ctypes.byref(memory))
            peak[0] = max(peak[0], int(memory.used))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()
        nvml.nvmlShutdown()
        del os.environ["CASABA_SIMULATED_DIR"]
