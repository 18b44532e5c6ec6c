"""What tenants use, as their guards tell it. A tenant can lie about itself, to nobody's harm.

Structs, not dataclasses: a scrape makes hundreds of them, and these are made ten times as fast.
"""

from msgspec import Struct

from casaba.model.limits import CardUsage, Policy


class ProcessUsage(Struct, frozen=True, kw_only=True):
    """One process of a budget."""

    slot: int
    """Its place in the region; that of another one when it has ended."""
    pid: int
    """In the process's own PID namespace; each container has a PID 1."""
    pid_namespace: int
    """Inode of that namespace; 0: its guard can't tell."""
    started_ns: int
    """CLOCK_BOOTTIME when it took its slot."""
    guard_version: int
    cards: tuple[CardUsage, ...]
    """Memory per card, in the policy's order."""
    kinds_bytes: tuple[int, ...]
    """Memory by kind, in the order of the region's layout."""
    peak_bytes: int
    refusals: int
    """Allocations that were refused for being over the limit."""
    launches: int
    gpu_time_ns: int
    """Busy time of the cards that was charged."""
    wait_ns: int
    """Time that launches were held back."""
    last_launch_ns: int
    """CLOCK_BOOTTIME; 0: none yet."""


class CardTimes(Struct, frozen=True, kw_only=True):
    """A budget's time on one card since it was made, of dead processes too, in nanoseconds."""

    busy_ns: int
    """Busy time of the card that was charged."""
    wait_ns: int
    """Time that launches were held back."""


class BudgetUsage(Struct, frozen=True, kw_only=True):
    """One budget with its living processes."""

    claim: str
    request: str
    policy: Policy
    processes: tuple[ProcessUsage, ...]
    refusals: int
    """Of all processes since the budget was made, dead ones too."""
    times: tuple[CardTimes, ...] = ()
    """In the policy's order of cards."""
    region_id: int = 0
    """Inode of the region: another one begins at zero."""
    damaged: bool = False
    """Whether the region can't be read as one: its tenant wrote over it. The limits hold."""
