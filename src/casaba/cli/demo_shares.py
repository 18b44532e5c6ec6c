"""The demo's tenants that share a card's time: watched by the card's own account, drawn as bars."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from casaba.simulation.card_account import CardAccount, read_account

SETTLE_S = 1.0
FRAME_S = 0.25


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """One that keeps the card as busy as it may."""

    name: str
    cores_percent: int
    pid: int
    """The process of its container."""


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


async def watch_shares(
    tenants: Sequence[Tenant],
    seconds: float,
    console: Console | None,
    driver: Path,
    environment: Mapping[str, str],
) -> tuple[Reached, ...]:
    """Watch for so long, from a moment on; bars move on the console if there is one.

    `environment` leads to the virtual cards. Raises HostError.
    """

    async def account() -> CardAccount:
        return await asyncio.to_thread(read_account, driver, environment)

    await asyncio.sleep(SETTLE_S)
    first = await account()
    end_s = time.monotonic() + seconds
    reached = _reached(tenants, first, first)
    with Live(console=console, transient=True) if console else nullcontext() as live:
        while time.monotonic() < end_s:
            await asyncio.sleep(FRAME_S)
            reached = _reached(tenants, first, await account())
            if live is not None:
                live.update(shares_table(reached))
    return reached


def _reached(
    tenants: Sequence[Tenant], first: CardAccount, now: CardAccount
) -> tuple[Reached, ...]:
    return tuple(Reached(tenant=one, share=now.share(first, one.pid)) for one in tenants)


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
