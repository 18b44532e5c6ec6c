"""`casaba smi`: what the slices of this user, or of this node, hold and use now."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from rich.table import Table

from casaba.cli.console import CommandConsole
from casaba.cli.exits import exit_code_of
from casaba.model.limits import CardLimits
from casaba.model.quantity import MIB
from casaba.model.usage import BudgetUsage, ProcessUsage
from casaba.node.run_folders import own_folder, run_folders
from casaba.node.usage import read_budgets
from casaba.settings import _host_paths as fixed
from casaba.wire.region_file import KINDS

app = App(name="casaba smi", help="What slices hold and use now.", version_flags=[])

_NS_PER_S = 1e9


@app.default
def smi(
    *, run_dir: Path | None = None, json: Annotated[bool, Parameter(negative=())] = False
) -> None:
    """What slices hold and use now.

    Parameters
    ----------
    run_dir:
        Folder with `claims` in it; on a node /run/casaba. All your local slices if not given.
    json:
        One JSON object per slice instead of a table.
    """
    budgets = tuple(_budgets(run_dir))
    if json:
        for budget in budgets:
            print(msgspec.json.encode(_told(budget)).decode())
    else:
        _show(budgets)


def _budgets(run_dir: Path | None) -> Iterator[BudgetUsage]:
    runs = [run_dir] if run_dir else run_folders(own_folder(os.environ))
    for run in runs:
        yield from read_budgets(run / fixed.CLAIMS)


def _show(budgets: Sequence[BudgetUsage]) -> None:
    console = CommandConsole()
    if not budgets:
        console.print("no slices; start one with: casaba run --memory 1Gi -- COMMAND")
    for budget in budgets:
        console.print(_heading(budget), highlight=False)
        if budget.processes:
            console.print(_process_table(budget.processes))


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


def _told(budget: BudgetUsage) -> dict[str, object]:
    return {
        "claim": budget.claim,
        "request": budget.request,
        "refusals": budget.refusals,
        "cards": budget.policy.cards,
        "processes": [
            {**asdict(process), "kinds_bytes": _kinds(process)} for process in budget.processes
        ],
    }


def main(arguments: Sequence[str]) -> int:
    """Run; returns the exit code."""

    def parse_and_run() -> None:
        app(list(arguments), result_action="return_value")

    return exit_code_of("smi", parse_and_run)
