"""`casaba run`, which a person waits for."""

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


def measure() -> Iterator[Figure]:
    """The median of some starts of a command that does nothing."""
    command = [str(_CASABA), "run", "--simulate", "--memory", "10Gi", "--quiet", "--", "true"]
    subprocess.run(command, check=True)
    taken = [_timed(command) for _ in range(_RUNS)]
    yield Figure(name="run_startup", value=statistics.median(taken), unit="s", bound=0.4)


def _timed(command: Sequence[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - started
