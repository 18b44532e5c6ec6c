"""A node's report for a person's eyes: cards, below them their slices, as the terminal has room."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table

from casaba.cli.smi_layouts import (
    Layouts,
    SliceLine,
    card_layouts,
    slice_layouts,
    slice_lines,
)
from casaba.model.node_use import NodeUse
from casaba.wire.node_report import NodeReport

_NO_SLICES = "no slices: no claim is prepared on this node"
_NO_CARDS = "no cards: the driver shows none"


@dataclass(frozen=True, kw_only=True)
class NodeView:
    """Everything that the agent tells."""

    report: NodeReport
    fills_screen: bool = False
    """Whether it has the terminal's lines and no more: it says how many slices have no room."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What rich prints."""
        slices = slice_lines(self.report.use)
        if not self.fills_screen:
            yield Group(*self._parts(slices, len(slices)))
            return

        def lines(count: int) -> list[list[Segment]]:
            shown = Group(*self._parts(slices, count))
            return console.render_lines(shown, options.reset_height(), pad=False)

        height = options.size.height
        counts = range(min(height, len(slices)) + 1)
        fitting = bisect_right(counts, height, key=lambda count: len(lines(count)))
        yield from _cut(lines(max(fitting - 1, 0)), height)

    def _parts(self, slices: Sequence[SliceLine], count: int) -> list[RenderableType]:
        """All of it with the first slices only."""
        use = self.report.use
        parts: list[RenderableType] = [_heading(self.report), *_problems(self.report)]
        parts.append(_Fitting(card_layouts(use)) if use.gpus else _NO_CARDS)
        parts.append(_Fitting(slice_layouts(slices[:count])) if slices else _NO_SLICES)
        if count < len(slices):
            parts.append(f"[yellow]{len(slices) - count} more slices have no room here[/yellow]")
        return [*parts, *_guards(use)]


@dataclass(frozen=True)
class _Fitting:
    """The first of several tables that is no wider than the terminal; else the last, folded."""

    layouts: Layouts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield next(
            (table for table in self.layouts[:-1] if _width(console, table) <= options.max_width),
            self.layouts[-1],
        )


def _width(console: Console, table: Table) -> int:
    """Where nothing is squeezed."""
    unbounded = console.options.update(max_width=_UNBOUNDED_COLUMNS)
    return console.measure(table, options=unbounded).maximum


_UNBOUNDED_COLUMNS = 10_000


def _cut(lines: Sequence[list[Segment]], height: int) -> Iterator[Segment]:
    shown = lines if len(lines) <= height else lines[: height - 1]
    for line in shown:
        yield from line
        yield Segment.line()
    if len(shown) < len(lines):
        yield Segment(f"… and {len(lines) - len(shown)} more lines: the terminal is too small")


def _heading(report: NodeReport) -> str:
    state = "registered with the kubelet" if report.registered else "[red]not registered[/red]"
    node = escape(report.use.node)
    return f"[bold]{node}[/bold]  casaba {report.release}  guard {report.guard}  {state}"


def _problems(report: NodeReport) -> Iterator[str]:
    for problem in report.problems:
        yield f"[red]{escape(problem.reason)}[/red]: {escape(problem.message)}"
    if not report.use.pods_told:
        yield "[yellow]the kubelet does not tell its pods: names may be missing[/yellow]"


def _guards(use: NodeUse) -> Iterator[str]:
    for guard in use.guards:
        if guard.unguarded:
            where = escape(f"{guard.namespace}/{guard.name.pod} {guard.name.container}")
            yield f"[red]{where}: {guard.unguarded} processes on a card without a guard[/red]"
    for gpu in use.gpus:
        if foreign := use.foreign.get(gpu.uuid, 0):
            yield f"{gpu.device_name}: {foreign} processes on it that no slice limits"
