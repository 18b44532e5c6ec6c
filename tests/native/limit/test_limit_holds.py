"""The promise itself: a slice's processes never hold more than its limit, as the card counts it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from casaba.node.guard_library import native_dir
from casaba.node.nvidia.nvml import find_library
from casaba.simulation.gpu_host import host_folder, make_gpu_host, virtual_cards

REPOSITORY = Path(__file__).parents[3]
CASABA = Path(sys.executable).parent / "casaba"
RANDOM_ALLOC = REPOSITORY / "build" / "native" / "samples" / "random_alloc"
HERD = Path(__file__).with_name("herd.py")

MIB = 1 << 20
LIMIT = 10240 * MIB
ALLOWANCE = 512 * MIB
PROCESSES = 16


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class CardAccount:
    """The card's own account, read past the guard through NVML."""

    def __init__(self) -> None:
        self._nvml = ctypes.CDLL(str(find_library(native_dir() / "simulated_driver")))
        assert self._nvml.nvmlInit_v2() == 0
        self._card = ctypes.c_void_p()
        assert self._nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._card)) == 0

    def used(self) -> int:
        """Bytes that all living processes hold."""
        memory = Memory()
        assert self._nvml.nvmlDeviceGetMemoryInfo(self._card, ctypes.byref(memory)) == 0
        return int(memory.used)

    def close(self) -> None:
        """End NVML, so that another card can be looked at."""
        self._nvml.nvmlShutdown()


@pytest.fixture
def runtime_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's runtime folder, whose virtual A10 this process looks at too."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("CASABA_SIMULATED_DIR", str(card_folder(tmp_path)))
    return tmp_path


def card_folder(runtime_dir: Path) -> Path:
    """Where `casaba run --simulate` keeps its virtual A10."""
    return host_folder(runtime_dir / "casaba", "A10", native_dir() / "simulated_driver")


def make_card(runtime_dir: Path, context_mib: int) -> None:
    """The virtual A10 that `casaba run` will use."""
    (runtime_dir / "casaba").mkdir(mode=0o700)
    cards = virtual_cards(["A10"], context_mib=context_mib)
    make_gpu_host(card_folder(runtime_dir), cards)


@pytest.fixture
def card(runtime_dir: Path, context_mib: int) -> Iterator[CardAccount]:
    """The account of the card."""
    make_card(runtime_dir, context_mib)
    account = CardAccount()
    yield account
    account.close()


def herd(seconds: float, kills: int, context_mib: int) -> subprocess.Popen[str]:
    """A herd under `casaba run`."""
    context_size = ["--context-size", f"{context_mib}Mi"]
    inside = [sys.executable, HERD, RANDOM_ALLOC, PROCESSES, seconds, kills, 20261130]
    command = [str(CASABA), "run", "--simulate", "--memory", "10Gi", "--quiet"]
    words = [*command, *context_size, "--"] + [str(word) for word in inside]
    return subprocess.Popen(words, env=os.environ, stdout=subprocess.PIPE, text=True)


def watch(card: CardAccount, process: subprocess.Popen[str]) -> list[int]:
    """Samples of the card, as often as can be, until the herd is over."""
    samples = []
    while process.poll() is None:
        samples.append(card.used())
        time.sleep(0.0005)
    return samples


def shown_used_mib() -> int:
    """What a new process of another, later slice sees in use: nothing may be left charged."""
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    command = [str(CASABA), "run", "--simulate", "--memory", "10Gi", "--quiet", "--", *query]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("context_mib", "seconds", "kills", "most"),
    [(0, 60, 200, LIMIT), (256, 15, 40, LIMIT + ALLOWANCE)],
    ids=["bare", "with contexts of size"],
)
def test_never_more_than_the_limit_and_nothing_left(
    card: CardAccount, context_mib: int, seconds: float, kills: int, most: int
) -> None:
    with herd(seconds, kills, context_mib) as process:
        samples = watch(card, process)
        assert process.stdout is not None
        assert process.stdout.read() == f"{kills} killed\n"
    assert process.returncode == 0
    assert max(samples) <= most
    assert max(samples) > 0.8 * LIMIT, "the limit was never put to the test"
    assert len(samples) > 100 * seconds
    assert card.used() == 0
    assert shown_used_mib() == 0
