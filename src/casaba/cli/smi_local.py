"""This user's own slices for a person's eyes, and as objects."""

import time
from collections.abc import Sequence

from msgspec import structs
from rich.console import Group, RenderableType
from rich.table import Table

from casaba.model.limits import CardLimits
from casaba.model.quantity import MIB
from casaba.model.usage import BudgetUsage, ProcessUsage
from casaba.wire.region_file import KINDS

_NS_PER_S = 1e9


def local_view(budgets: Sequence[BudgetUsage]) -> RenderableType:
    """Each with its cards and living processes."""
    if not budgets:
        return "no slices; start one with: casaba run --memory 1Gi -- COMMAND"
    parts: list[RenderableType] = []
    for budget in budgets:
        parts.append(_heading(budget))
        if budget.processes:
            parts.append(_process_table(budget.processes))
    return Group(*parts)


def _heading(budget: BudgetUsage) -> str:
    cards = (
        f"{limits.gpu}  {_used(budget, number) // MIB} / {limits.memory_bytes // MIB} MiB"
        f"  {_cores(limits)}"
        for number, limits in enumerate(budget.policy.cards)
    )
    name = f"[bold]{budget.claim}/{budget.request}[/bold]"
    return "\n  ".join([f"{name}  {budget.refusals} refusals", *cards])


def _used(budget: BudgetUsage, number: int) -> int:
    return sum(process.cards[number].asked_bytes for process in budget.processes)


def _cores(limits: CardLimits) -> str:
    capped = 0 < limits.cores_percent < 100
    return f"{limits.cores_percent} % of its time" if capped else "no cap on its time"


def _process_table(processes: Sequence[ProcessUsage]) -> Table:
    columns = ("PID", "memory", "of which", "peak", "refused", "GPU time", "waited", "launches")
    table = Table(*columns, "last", "guard")
    for process in processes:
        table.add_row(
            str(process.pid),
            _mib(sum(card.asked_bytes for card in process.cards)),
            ", ".join(f"{kind} {_mib(size)}" for kind, size in _kinds(process).items()),
            _mib(process.peak_bytes),
            str(process.refusals),
            f"{process.gpu_time_ns / _NS_PER_S:.2f} s",
            f"{process.wait_ns / _NS_PER_S:.2f} s",
            str(process.launches),
            _ago(process.last_launch_ns),
            _version(process.guard_version),
        )
    return table


def _mib(size: int) -> str:
    return f"{size // MIB} MiB"


def _ago(boot_time_ns: int) -> str:
    if boot_time_ns == 0:
        return "-"
    return f"{(time.clock_gettime_ns(time.CLOCK_BOOTTIME) - boot_time_ns) / _NS_PER_S:.1f} s ago"


def _version(number: int) -> str:
    return ".".join(str(number >> shift & 0xFF) for shift in (16, 8, 0))


def _kinds(process: ProcessUsage) -> dict[str, int]:
    named = zip(KINDS, process.kinds_bytes, strict=True)
    return {kind: size for kind, size in named if size}


def budget_told(budget: BudgetUsage) -> dict[str, object]:
    """The object of one slice."""
    return {
        "claim": budget.claim,
        "request": budget.request,
        "refusals": budget.refusals,
        "cards": budget.policy.cards,
        "processes": [
            {**structs.asdict(process), "kinds_bytes": _kinds(process)}
            for process in budget.processes
        ],
    }
