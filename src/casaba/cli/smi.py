"""`casaba smi`: what the slices of this user, or of this node, hold and use now."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from msgspec import structs
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table

from casaba.cli.console import CommandConsole
from casaba.cli.exits import exit_code_of
from casaba.cli.smi_node import node_view
from casaba.errors import InvalidInput
from casaba.model.limits import CardLimits
from casaba.model.quantity import MIB
from casaba.model.usage import BudgetUsage, ProcessUsage
from casaba.net.operator_socket import fetch_document
from casaba.node.run_folders import own_folder, run_folders
from casaba.node.usage import read_budgets
from casaba.settings import _host_paths as fixed
from casaba.settings.node_agent import OPERATOR_SOCKET
from casaba.wire.node_report import parse_report
from casaba.wire.region_file import KINDS

app = App(name="casaba smi", help="What slices hold and use now.", version_flags=[])

AGENT_SOCKET = Path(fixed.RUN_DIR) / OPERATOR_SOCKET

_ANSWER_S = 30.0
_SHORTEST_WATCH_S = 0.1
_NS_PER_S = 1e9
_WIDE_COLUMNS = 1000


@app.default
def smi(
    *,
    run_dir: Path | None = None,
    agent: Path | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    watch: float | None = None,
) -> None:
    """What slices hold and use now.

    On a node with an agent, and for root: cards, slices, and the containers that have them.
    Elsewhere: your local slices.

    Parameters
    ----------
    run_dir:
        Folder with `claims` in it; no agent is asked.
    agent:
        The agent's socket; /run/casaba/agent.sock if you may open it and nothing is given.
    json:
        JSON instead of a table: one object of the node, or one for each local slice.
    watch:
        Show it again after so many seconds, until Ctrl-C.
    """
    if watch is not None and watch < _SHORTEST_WATCH_S:
        raise InvalidInput(f"--watch {watch}: give at least {_SHORTEST_WATCH_S} seconds")
    asked = agent or (None if run_dir else _agent_of_this_node())
    if json:
        _repeat(lambda: _print_json(asked, run_dir), watch)
    elif watch is None:
        _console().print(_view(asked, run_dir), highlight=False)
    else:
        _show_live(lambda: _view(asked, run_dir), watch)


def _agent_of_this_node() -> Path | None:
    return AGENT_SOCKET if os.access(AGENT_SOCKET, os.R_OK | os.W_OK) else None


def _print_json(agent: Path | None, run_dir: Path | None) -> None:
    if agent:
        document = fetch_document(agent, _ANSWER_S)
        parse_report(document)
        print(document.decode(), flush=True)
    else:
        for budget in _budgets(run_dir):
            print(msgspec.json.encode(_told(budget)).decode(), flush=True)


def _view(agent: Path | None, run_dir: Path | None) -> RenderableType:
    if agent:
        return node_view(parse_report(fetch_document(agent, _ANSWER_S)))
    return _local_view(tuple(_budgets(run_dir)))


def _repeat(show: Callable[[], None], pause_s: float | None) -> None:
    show()
    while pause_s is not None:
        time.sleep(pause_s)
        show()


def _show_live(view: Callable[[], RenderableType], pause_s: float) -> None:
    console = _console()
    if not sys.stdout.isatty():
        _repeat(lambda: console.print(view(), highlight=False), pause_s)
        return
    with Live(view(), console=console, screen=True, auto_refresh=False) as live:
        _repeat(lambda: live.update(view(), refresh=True), pause_s)


def _console() -> CommandConsole:
    """A pipe or a file has no width: nothing is squeezed, unless COLUMNS says how wide it is."""
    bounded = sys.stdout.isatty() or "COLUMNS" in os.environ
    return CommandConsole(width=None if bounded else _WIDE_COLUMNS)


def _budgets(run_dir: Path | None) -> Iterator[BudgetUsage]:
    runs = [run_dir] if run_dir else run_folders(own_folder(os.environ))
    for run in runs:
        yield from read_budgets(run / fixed.CLAIMS)


def _local_view(budgets: Sequence[BudgetUsage]) -> RenderableType:
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


def _told(budget: BudgetUsage) -> dict[str, object]:
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


def main(arguments: Sequence[str]) -> int:
    """Run; returns the exit code."""

    def parse_and_run() -> None:
        app(list(arguments), result_action="return_value")

    return exit_code_of("smi", parse_and_run)
