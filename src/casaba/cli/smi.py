"""`casaba smi`: what the slices of this user, or of this node, hold and use now."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from rich.console import RenderableType

from casaba.cli.console import CommandConsole
from casaba.cli.exits import exit_code_of
from casaba.cli.smi_local import budget_told, local_view
from casaba.cli.smi_node import NodeView
from casaba.cli.smi_watch import checked_pause, repeat, show_live
from casaba.model.usage import BudgetUsage
from casaba.net.operator_socket import fetch_document
from casaba.node.run_folders import own_folder, run_folders
from casaba.node.usage import read_budgets
from casaba.settings import _host_paths as fixed
from casaba.settings.node_agent import OPERATOR_SOCKET
from casaba.wire.node_report import parse_report

app = App(name="casaba smi", help="What slices hold and use now.", version_flags=[])

AGENT_SOCKET = Path(fixed.RUN_DIR) / OPERATOR_SOCKET

_ANSWER_S = 30.0
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
        Show it again after so many seconds, until Ctrl-C, also while the agent is started anew.
    """
    pause_s = None if watch is None else checked_pause(watch)
    asked = agent or (None if run_dir else _agent_of_this_node())
    if json:
        repeat(lambda: _print_json(asked, run_dir), pause_s)
    elif pause_s is not None and sys.stdout.isatty():
        show_live(_console(), lambda: _view(asked, run_dir, fills_screen=True), pause_s)
    else:
        console = _console()
        repeat(lambda: console.print(_view(asked, run_dir), highlight=False), pause_s)


def _agent_of_this_node() -> Path | None:
    return AGENT_SOCKET if os.access(AGENT_SOCKET, os.R_OK | os.W_OK) else None


def _print_json(agent: Path | None, run_dir: Path | None) -> None:
    if agent:
        document = fetch_document(agent, _ANSWER_S)
        parse_report(document)
        print(document.decode(), flush=True)
    else:
        for budget in _budgets(run_dir):
            print(msgspec.json.encode(budget_told(budget)).decode(), flush=True)


def _view(
    agent: Path | None, run_dir: Path | None, *, fills_screen: bool = False
) -> RenderableType:
    if agent:
        report = parse_report(fetch_document(agent, _ANSWER_S))
        return NodeView(report=report, fills_screen=fills_screen)
    return local_view(tuple(_budgets(run_dir)))


def _console() -> CommandConsole:
    """A pipe or a file has no width: nothing is squeezed, unless COLUMNS says how wide it is."""
    bounded = sys.stdout.isatty() or "COLUMNS" in os.environ
    return CommandConsole(width=None if bounded else _WIDE_COLUMNS)


def _budgets(run_dir: Path | None) -> Iterator[BudgetUsage]:
    runs = [run_dir] if run_dir else run_folders(own_folder(os.environ))
    for run in runs:
        yield from read_budgets(run / fixed.CLAIMS)


def main(arguments: Sequence[str]) -> int:
    """Run; returns the exit code."""

    def parse_and_run() -> None:
        app(list(arguments), result_action="return_value")

    return exit_code_of("smi", parse_and_run)
