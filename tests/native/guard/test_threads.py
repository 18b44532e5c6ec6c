"""Many threads at once, watched by gcc's sanitizers."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.native.guard.conftest import ROOT, make
from tests.native.guard.machine import CARDS, MIB, Machine

LIMIT = 256 * MIB


@dataclass(frozen=True)
class Sanitized:
    """Guard, driver and sample program under one sanitizer."""

    runtime: str
    folder: Path

    @property
    def parts(self) -> tuple[Path, Path, Path, Path]:
        """Guard, driver, programs."""
        driver = self.folder / "simulated_driver" / "libcuda.so.1"
        return (
            self.folder / "libcasaba_guard.so",
            driver,
            self.folder / "samples" / "random_alloc",
            self.folder / "bench" / "memory_herd",
        )

    def run(self, machine: Machine, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """A program under the guard."""
        guard, driver, *_ = self.parts
        environment = machine.environment(guarded=False) | {
            "LD_PRELOAD": f"{self.runtime_file()}:{guard}",
            "LD_LIBRARY_PATH": str(driver.parent),
        }
        command = [str(word) for word in words]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    def runtime_file(self) -> str:
        """The sanitizer's runtime, which must come first in the process."""
        command = ["gcc", f"-print-file-name={self.runtime}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(params=["asan", "tsan"])
def sanitized(request: pytest.FixtureRequest) -> Sanitized:
    """Built with it."""
    name = str(request.param)
    built = Sanitized(f"lib{name}.so", ROOT / "build" / "native" / name)
    make(*built.parts)
    return built


def test_threads_share_the_limit(machine: Machine, sanitized: Sanitized) -> None:
    """Both budgets of the card are used, also by split blocks."""
    budgets = [machine.budget({CARDS[0]: LIMIT}, claim=c, context_size=MIB) for c in "ab"]
    *_, program, _ = sanitized.parts
    sizes = ["--seconds=2", "--threads=6", "--max-mib=350", "--blocks=8"]
    done = sanitized.run(machine, program, *sizes)
    assert (done.returncode, done.stderr) == (0, "")
    counts = re.search(r"(\d+) allocations, (\d+) refusals", done.stdout)
    assert counts
    assert int(counts[1]) > 50
    assert int(counts[2]) > 0
    assert [budget.usage()[0].asked_bytes for budget in budgets] == [0, 0]
    # The program ends with the primary context that it opened the device with.
    assert sum(budget.usage()[0].overhead_bytes for budget in budgets) == MIB


def test_threads_take_memory_of_all_kinds(machine: Machine, sanitized: Sanitized) -> None:
    """Each kind is refused now and then, and nothing is left charged."""
    budgets = [machine.budget({CARDS[0]: LIMIT}, claim=c, context_size=MIB) for c in "ab"]
    done = sanitized.run(machine, sanitized.parts[-1], "1", "1500", "4000", "4")
    assert re.sub(r"^[a-z ]+ refused\n", "", done.stderr, flags=re.M) == ""
    assert done.returncode == 0
    counts = re.search(r"(\d+) done, (\d+) refused", done.stdout)
    assert counts
    assert int(counts[2]) > 0
    assert [budget.usage()[0].asked_bytes for budget in budgets] == [0, 0]
    assert sum(budget.usage()[0].overhead_bytes for budget in budgets) == MIB
