"""The demo's tenants that share a card's time: run, watched by the card's own account, drawn."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from casaba.cli.run import DEFAULT_MODEL, simulated_host
from casaba.errors import CasabaError
from casaba.node.guard_library import native_dir
from casaba.services.local_slice.main import simulated_driver_dir
from casaba.simulation.card_account import CardAccount, read_account

SETTLE_S = 1.0
FRAME_S = 0.25
_KERNELS = "200us,1ms,2ms"
_MEMORY = "4Gi"


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """One that keeps the card as busy as it may."""

    name: str
    cores_percent: int


@dataclass(frozen=True, kw_only=True)
class Reached:
    """What a tenant got of the card's time, in percent."""

    tenant: Tenant
    share: float

    def told(self) -> dict[str, object]:
        """For machines."""
        return {
            "name": self.tenant.name,
            "cores": self.tenant.cores_percent,
            "reached": round(self.share, 2),
        }


def run_side_by_side(
    tenants: Sequence[Tenant], seconds: float, console: Console | None
) -> tuple[Reached, ...]:
    """Run all for so long; bars move on the console if there is one. Raises CasabaError."""
    simulated_host(DEFAULT_MODEL)
    with _running(tenants, SETTLE_S + seconds) as processes:
        pids = [process.pid for process in processes]
        time.sleep(SETTLE_S)
        return _watch(tenants, pids, seconds, console)


@contextmanager
def _running(
    tenants: Sequence[Tenant], seconds: float
) -> Iterator[Sequence[subprocess.Popen[bytes]]]:
    processes = [_start(tenant, seconds) for tenant in tenants]
    try:
        for process in processes:
            if process.stdout is None or process.stdout.readline() != b"busy\n":
                raise CasabaError(f"a tenant ended with {process.wait()}: run `make native`")
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _start(tenant: Tenant, seconds: float) -> subprocess.Popen[bytes]:
    """`casaba run` of its own; the PID stays when it becomes the tenant's program."""
    busy = [f"--kernels={_KERNELS}", f"--seconds={int(seconds) + 30}"]
    limits = ["--memory", _MEMORY, "--cores", str(tenant.cores_percent)]
    program = str(native_dir() / "samples" / "busy")
    command = [sys.executable, "-m", "casaba", "run", f"--simulate={DEFAULT_MODEL}", "--quiet"]
    return subprocess.Popen([*command, *limits, "--", program, *busy], stdout=subprocess.PIPE)


def _watch(
    tenants: Sequence[Tenant], pids: Sequence[int], seconds: float, console: Console | None
) -> tuple[Reached, ...]:
    first = _account()
    end_s = time.monotonic() + seconds
    reached = _reached(tenants, pids, first, first)
    with Live(console=console) if console else nullcontext() as live:
        while time.monotonic() < end_s:
            time.sleep(FRAME_S)
            reached = _reached(tenants, pids, first, _account())
            if live is not None:
                live.update(shares_table(reached))
        if live is not None:
            live.update("")
    return reached


def _account() -> CardAccount:
    return read_account(simulated_driver_dir(), os.environ)


def _reached(
    tenants: Sequence[Tenant], pids: Sequence[int], first: CardAccount, now: CardAccount
) -> tuple[Reached, ...]:
    return tuple(
        Reached(tenant=tenant, share=now.share(first, pid))
        for tenant, pid in zip(tenants, pids, strict=True)
    )


def shares_table(reached: Sequence[Reached]) -> Table:
    """A bar per tenant."""
    table = Table("", "asked", "", "reached", box=None)
    for one in reached:
        table.add_row(
            one.tenant.name,
            f"{one.tenant.cores_percent} %",
            ProgressBar(total=100, completed=one.share, width=40),
            f"{one.share:.1f} %",
        )
    return table
