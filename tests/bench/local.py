"""What a person waits for: the start of `casaba run`, the story of `casaba demo`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.figures import Figure

_CASABA = Path(sys.executable).parent / "casaba"
_RUNS = 15

FIGURES = ("run_startup", "demo_s")


def measure() -> Iterator[Figure]:
    """The median of some starts of a command that does nothing; a demo at a person's pace."""
    command = [str(_CASABA), "run", "--simulate", "--memory", "10Gi", "--quiet", "--", "true"]
    subprocess.run(command, check=True)
    taken = [_timed(command) for _ in range(_RUNS)]
    yield Figure(name="run_startup", value=statistics.median(taken), unit="s", bound=0.4)
    told = _timed([str(_CASABA), "demo", "--name", "bench"], stdout=subprocess.DEVNULL)
    yield Figure(name="demo_s", value=told, unit="s", bound=30)


def _timed(command: Sequence[str], stdout: int | None = None) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=stdout)
    return time.perf_counter() - started
