"""The virtual card's own account of whom it served how long; not what a guard says."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from casaba.errors import HostError

_TIMEOUT_S = 10


@dataclass(frozen=True, kw_only=True)
class CardAccount:
    """The card's clock, and the busy time of each process since ever, by PID."""

    now_ns: int
    busy_ns: Mapping[int, int]

    def share(self, earlier: "CardAccount", pid: int) -> float:
        """Percent of the time since an earlier account that a process was served."""
        busy_ns = self.busy_ns.get(pid, 0) - earlier.busy_ns.get(pid, 0)
        return 100 * busy_ns / max(self.now_ns - earlier.now_ns, 1)


def read_account(driver: Path, environment: Mapping[str, str]) -> CardAccount:
    """What the only card of the simulated host says now; raises HostError.

    `driver` is the folder of the stand-in driver, `environment` that of a process without guard.
    """
    command = [str(driver / "nvidia-smi"), "--busy"]
    done = subprocess.run(
        command,
        env={**environment, "LD_LIBRARY_PATH": str(driver)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    rows = [line.split(", ") for line in done.stdout.splitlines()[1:]]
    totals = [int(row[2]) for row in rows if row[1] == "total"]
    if done.returncode or len(totals) != 1:
        raise HostError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    busy_ns = {int(row[2]): int(row[4]) for row in rows if row[1] != "total"}
    return CardAccount(now_ns=totals[0], busy_ns=busy_ns)
