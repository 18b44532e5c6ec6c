"""Memory limit and share of time on a real card, by `casaba run` and the driver-API samples."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.figures import Figure, tell

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "build" / "native" / "samples"
CASABA = Path(sys.executable).parent / "casaba"

MEMORY_MIB = 4096
CHUNK_MIB = 64
CORES = (25, 50, 75)
COMMAND_TIMEOUT_S = 90.0
BOUND_POINTS = 2.0


class Card:
    """Runs commands in slices of the card."""

    def __init__(self, *, simulate: bool, seconds: float) -> None:
        self._simulate = ["--simulate"] if simulate else []
        self.seconds = seconds

    def command(self, *words: object, cores: int = 0) -> list[str]:
        """A command in a slice of its own."""
        limits = ["--memory", f"{MEMORY_MIB}Mi", "--cores", str(cores), "--quiet"]
        return [str(CASABA), "run", *self._simulate, *limits, "--", *map(str, words)]

    def said(self, *words: object) -> str:
        """What a command says to its end."""
        done = subprocess.run(
            self.command(*words),
            check=True,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
        )
        return done.stdout

    def share(self, cores: int) -> float:
        """Mean utilisation that NVML tells while a benchmark runs under a cap."""
        script = f"{SAMPLES}/benchmark --num_batches=100000000 & trap 'kill $!' EXIT; sleep 2; "
        measure = f"{SAMPLES}/utilization --seconds={self.seconds}"
        done = subprocess.run(
            self.command("sh", "-c", script + measure, cores=cores),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
        )
        (told,) = (line.split()[1] for line in done.stdout.splitlines() if line.startswith("card "))
        return float(told)


def figures(card: Card) -> Iterator[Figure]:
    """All figures of the script."""
    said = card.said(SAMPLES / "alloc_until_refused", f"--chunk-mib={CHUNK_MIB}").splitlines()
    taken_mib = CHUNK_MIB * sum(line.endswith(" MiB allocated") for line in said)
    over_mib = max(taken_mib - MEMORY_MIB, 0)
    missing_mib = max(MEMORY_MIB - taken_mib, 0)
    yield Figure(name="gpu_over_limit_mib", value=over_mib, unit="MiB", bound=0)
    yield Figure(name="gpu_missing_mib", value=missing_mib, unit="MiB", bound=0)
    for cores in CORES:
        error = abs(card.share(cores) - cores)
        yield Figure(
            name=f"gpu_share_error_{cores}", value=error, unit="points", bound=BOUND_POINTS
        )


def main(arguments: Sequence[str]) -> int:
    """The exit code is 1 if a figure misses its bound."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu")
    parser.add_argument("--simulate", action="store_true", help="a virtual card")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    asked = parser.parse_args(arguments)
    return 0 if tell(figures(Card(simulate=asked.simulate, seconds=asked.seconds))) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
