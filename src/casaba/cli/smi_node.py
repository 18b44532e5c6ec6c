"""A node's report for a person's eyes: cards, below them their slices, with bars."""

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from casaba.model.card_reading import CardReading
from casaba.model.gpu import Gpu
from casaba.model.ids import GpuUuid
from casaba.model.node_use import NodeUse
from casaba.model.quantity import MIB
from casaba.model.slice_use import CardUse, SliceUse
from casaba.wire.node_report import NodeReport

_BAR_CHARS = 12
_NS_PER_S = 1e9


def node_view(report: NodeReport) -> RenderableType:
    """Everything that the agent tells."""
    use = report.use
    parts: list[RenderableType] = [_heading(report), *_problems(report), _cards(use)]
    parts.append(_slices(use) if use.slices else "no slices: no claim is prepared on this node")
    parts += _guards(use)
    return Group(*parts)


def _heading(report: NodeReport) -> str:
    state = "registered with the kubelet" if report.registered else "[red]not registered[/red]"
    node = escape(report.use.node)
    return f"[bold]{node}[/bold]  casaba {report.release}  guard {report.guard}  {state}"


def _problems(report: NodeReport) -> Iterator[str]:
    for problem in report.problems:
        yield f"[red]{escape(problem.reason)}[/red]: {escape(problem.message)}"
    if not report.use.pods_told:
        yield "[yellow]the kubelet does not tell its pods: names may be missing[/yellow]"


def _cards(use: NodeUse) -> Table:
    table = Table("card", "model", "memory", "", "given out", "busy", "", "slices", "UUID")
    for gpu in use.gpus:
        table.add_row(*_card_row(gpu, use.readings.get(gpu.uuid), use))
    return table


def _card_row(gpu: Gpu, reading: CardReading | None, use: NodeUse) -> Iterator[RenderableType]:
    yield gpu.device_name
    yield escape(gpu.product_name)
    if reading is None or reading.error is not None:
        yield f"[red]{escape(reading.error or '') if reading else 'not read'}[/red]"
        yield ""
    else:
        used = reading.memory_used_bytes or 0
        yield f"{used // MIB} / {gpu.memory_bytes // MIB} MiB"
        yield _bar(used, gpu.memory_bytes)
    held = [card for _, card in _on_card(use.slices, gpu.uuid)]
    yield _given_out(held)
    busy = reading.utilization_percent if reading else None
    yield "-" if busy is None else f"{busy} %"
    yield _bar(busy or 0, 100)
    yield str(len(held))
    yield gpu.uuid


def _given_out(held: list[CardUse]) -> str:
    memory = sum(card.memory_limit_bytes for card in held) // MIB
    return f"{memory} MiB, {sum(card.cores_percent for card in held)} %"


def _slices(use: NodeUse) -> Table:
    table = Table(
        *("card", "namespace", "pod", "container", "claim / request", "memory", ""),
        *("cores", "busy", "", "waited", "refused", "procs"),
    )
    for gpu in use.gpus:
        for slice_, card in _on_card(use.slices, gpu.uuid):
            table.add_row(gpu.device_name, *_slice_row(slice_, card))
    return table


def _on_card(slices: Iterable[SliceUse], gpu: GpuUuid) -> Iterator[tuple[SliceUse, CardUse]]:
    for slice_ in slices:
        for card in slice_.cards:
            if card.gpu == gpu:
                yield slice_, card


def _slice_row(slice_: SliceUse, card: CardUse) -> Iterator[RenderableType]:
    yield slice_.namespace
    yield "\n".join(user.pod for user in slice_.users) or "-"
    yield "\n".join(user.container for user in slice_.users) or "-"
    yield f"{slice_.claim} / {slice_.request}"
    if slice_.damaged:
        yield "[red]accounting damaged by the tenant[/red]"
        yield ""
    else:
        yield f"{card.memory_used_bytes // MIB} / {card.memory_limit_bytes // MIB} MiB"
        yield _bar(card.memory_used_bytes, card.memory_limit_bytes)
    capped = 0 < card.cores_percent < 100
    yield f"{card.cores_percent} %" if capped else "no cap"
    busy = card.card_percent
    yield "-" if busy is None else f"{busy:.0f} %"
    yield _bar(busy or 0, card.cores_percent if capped else 100)
    yield f"{card.wait_ns / _NS_PER_S:.1f} s"
    yield str(slice_.refusals)
    yield str(len(slice_.pids))


def _guards(use: NodeUse) -> Iterator[str]:
    for guard in use.guards:
        if guard.unguarded:
            where = escape(f"{guard.namespace}/{guard.name.pod} {guard.name.container}")
            yield f"[red]{where}: {guard.unguarded} processes on a card without a guard[/red]"
    for gpu in use.gpus:
        if foreign := use.foreign.get(gpu.uuid, 0):
            yield f"{gpu.device_name}: {foreign} processes on it that no slice limits"


def _bar(value: float, whole: float) -> ProgressBar:
    return ProgressBar(total=max(whole, 1), completed=min(value, whole), width=_BAR_CHARS)
