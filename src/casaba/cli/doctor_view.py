"""Findings for a person's eyes: a short table, and for each ✘ what to do; and for programs."""

from collections.abc import Iterator
from itertools import groupby

from rich.markup import escape
from rich.table import Column, Table

from casaba.cli.console import CommandConsole
from casaba.policy.diagnosis import Finding, State, exit_code

REPORT_VERSION = 1

_DASH = "\N{EN DASH}"
_SIGNS: dict[State, tuple[str, str, str]] = {
    "ok": ("✔", "green", "ok"),
    "warning": ("!", "yellow", "!"),
    "wrong": ("✘", "red", "XX"),
    "unknown": (_DASH, "yellow", "-"),
    "skipped": (_DASH, "dim", "-"),
}
"""The sign of each state, its colour, and the sign where the terminal has only letters."""


def report(scope: str, found: tuple[Finding, ...]) -> dict[str, object]:
    """The JSON object: `{"version": 1, "scope": …, "exit_code": …, "findings": […]}`."""
    return {
        "version": REPORT_VERSION,
        "scope": scope,
        "exit_code": exit_code(found),
        "findings": found,
    }


def _sign(console: CommandConsole, state: State) -> str:
    sign, colour, letters = _SIGNS[state]
    return f"[{colour}]{sign if _has_signs(console) else letters}[/{colour}]"


def _has_signs(console: CommandConsole) -> bool:
    try:
        f"✔✘{_DASH}".encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def print_problems(found: tuple[Finding, ...]) -> None:
    """A line for each that is not well, never broken: others show them, such as Helm."""
    console = CommandConsole(soft_wrap=True)
    for finding in found:
        if finding.state in _ADVISED:
            advice = f"; to do: {finding.advice}" if finding.advice else ""
            text = escape(f"{finding.title}: {finding.seen}{advice}")
            console.print(f"{_sign(console, finding.state)} {text}", highlight=False)
    console.print(_summary(found), highlight=False)


def print_table(scope: str, found: tuple[Finding, ...]) -> None:
    """For people at a terminal: what was found, then what to do."""
    console = CommandConsole()
    table = Table("", scope, Column(overflow="fold"), box=None, show_edge=False, pad_edge=False)
    for title, finding in _rows(found):
        table.add_row(_sign(console, finding.state), escape(title), escape(finding.seen))
    console.print(table, highlight=False)
    _print_advice(console, [one for one in found if one.advice and one.state in _ADVISED])
    console.print(f"\n{_summary(found)}", highlight=False)


def _rows(found: tuple[Finding, ...]) -> Iterator[tuple[str, Finding]]:
    """With their titles; what is skipped for one reason is told once."""
    for _, group in groupby(found, key=lambda one: one.seen if one.state == "skipped" else one.id):
        first, *others = group
        yield f"{len(others) + 1} other checks" if others else first.title, first


def _print_advice(console: CommandConsole, advised: list[Finding]) -> None:
    if not advised:
        return
    console.print("\n[bold]what to do[/bold]", highlight=False)
    rows = Table(
        "",
        "",
        Column(overflow="fold"),
        box=None,
        show_header=False,
        show_edge=False,
        pad_edge=False,
    )
    for finding in advised:
        sign = _sign(console, finding.state)
        rows.add_row(sign, escape(finding.title), escape(finding.advice))
    console.print(rows, highlight=False)


_SUMMARIES: tuple[tuple[State, str], ...] = (
    ("wrong", "wrong"),
    ("warning", "to look at"),
    ("unknown", "not looked at"),
)
_ADVISED = tuple(state for state, _ in _SUMMARIES)


def _summary(found: tuple[Finding, ...]) -> str:
    counts = {state: sum(finding.state == state for finding in found) for state, _ in _SUMMARIES}
    told = [f"{counts[state]} {words}" for state, words in _SUMMARIES if counts[state]]
    well = sum(finding.state == "ok" for finding in found)
    return ", ".join([*told, f"{well} well"]) if told else f"all {well} checks are well"
