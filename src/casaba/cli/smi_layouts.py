"""Tables of a node's cards and slices, the widest first: all that is told, without bars, folded."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.console import RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from casaba.model.card_reading import CardReading
from casaba.model.gpu import Gpu
from casaba.model.node_use import NodeUse
from casaba.model.quantity import MIB
from casaba.model.slice_use import CardUse, SliceUse

T = TypeVar("T")
Layouts = tuple[Table, ...]
Columns = Sequence[tuple[str, Callable[[T], RenderableType]]]
"""Headings, and what stands below them."""

_BAR_CHARS = 12
_NS_PER_S = 1e9


@dataclass(frozen=True, kw_only=True)
class SliceLine:
    """One slice on one of its cards."""

    card: str
    """Name of the card; its UUID, or -, of one that the driver does not show."""
    slice_: SliceUse
    use: CardUse | None
    """None: neither the card nor the slice's budget is there."""

    @property
    def capped(self) -> bool:
        """Whether it has less than all of the card's time."""
        return self.use is not None and 0 < self.use.cores_percent < 100


@dataclass(frozen=True, kw_only=True)
class _CardLine:
    gpu: Gpu
    reading: CardReading | None
    slices: tuple[CardUse, ...]


def slice_lines(use: NodeUse) -> list[SliceLine]:
    """All slices, by card; at the end those of cards that the driver does not show."""
    places = {gpu.uuid: place for place, gpu in enumerate(use.gpus)}
    names = {gpu.uuid: gpu.device_name for gpu in use.gpus}
    placed: list[tuple[int, SliceLine]] = []
    for slice_ in use.slices:
        for card in slice_.cards:
            name = names.get(card.gpu, card.gpu)
            placed.append((places.get(card.gpu, len(places)), _line(name, slice_, card)))
        if not slice_.cards:
            placed.append((len(places), _line("-", slice_, None)))
    return [line for _, line in sorted(placed, key=lambda one: one[0])]


def _line(card: str, slice_: SliceUse, use: CardUse | None) -> SliceLine:
    return SliceLine(card=card, slice_=slice_, use=use)


def slice_layouts(lines: Iterable[SliceLine]) -> Layouts:
    """Of slices; `lines` are read once for each."""
    lines = tuple(lines)
    return tuple(_table(columns, lines) for columns in (_SLICE, _SLICE_SHORT, _SLICE_FOLDED))


def card_layouts(use: NodeUse) -> Layouts:
    """Of cards."""
    slices = [(card.gpu, card) for slice_ in use.slices for card in slice_.cards]
    lines = [
        _CardLine(
            gpu=gpu,
            reading=use.readings.get(gpu.uuid),
            slices=tuple(card for uuid, card in slices if uuid == gpu.uuid),
        )
        for gpu in use.gpus
    ]
    return tuple(_table(columns, lines) for columns in (_CARD, _CARD_SHORT, _CARD_FOLDED))


def _table(columns: Columns[T], lines: Iterable[T]) -> Table:
    table = Table()
    for heading, _ in columns:
        table.add_column(heading, overflow="fold")
    for line in lines:
        table.add_row(*(cell(line) for _, cell in columns))
    return table


def _pods(line: SliceLine) -> str:
    return "\n".join(user.pod for user in line.slice_.users) or "-"


def _containers(line: SliceLine) -> str:
    return "\n".join(user.container for user in line.slice_.users) or "-"


def _claim(line: SliceLine) -> str:
    return f"{line.slice_.claim} / {line.slice_.request}"


def _whose(line: SliceLine) -> str:
    """Pods with their containers, and the claim."""
    namespace = line.slice_.namespace
    users = [f"{namespace}/{user.pod} {user.container}" for user in line.slice_.users]
    return "\n".join([*(users or [f"{namespace}/-"]), _claim(line)])


def _whose_and_refused(line: SliceLine) -> str:
    refused = line.slice_.refusals
    return f"{_whose(line)}\n{refused} refused" if refused else _whose(line)


def _slice_memory(line: SliceLine) -> str:
    if line.slice_.damaged:
        return "[red]accounting damaged by the tenant[/red]"
    if line.use is None:
        return "-"
    if line.use.memory_used_bytes is None:
        return "[yellow]can't be read now[/yellow]"
    return _memory(line.use.memory_used_bytes, line.use.memory_limit_bytes)


def _slice_memory_bar(line: SliceLine) -> RenderableType:
    if line.slice_.damaged or line.use is None or line.use.memory_used_bytes is None:
        return ""
    return _bar(line.use.memory_used_bytes, line.use.memory_limit_bytes)


def _cores(line: SliceLine) -> str:
    if line.use is None:
        return "-"
    return f"{line.use.cores_percent} %" if line.capped else "no cap"


def _slice_busy(line: SliceLine) -> str:
    busy = line.use.card_percent if line.use else None
    return "-" if busy is None else f"{busy:.0f} %"


def _busy_of_cores(line: SliceLine) -> str:
    busy = _slice_busy(line)
    return f"{busy.removesuffix(' %')} of {_cores(line)}" if line.capped else busy


def _slice_busy_bar(line: SliceLine) -> RenderableType:
    if line.use is None:
        return ""
    return _bar(line.use.card_percent or 0, line.use.cores_percent if line.capped else 100)


def _waited(line: SliceLine) -> str:
    wait_ns = line.use.wait_ns if line.use else None
    return "-" if wait_ns is None else f"{wait_ns / _NS_PER_S:.1f} s"


def _refused(line: SliceLine) -> str:
    refusals = line.slice_.refusals
    return "-" if refusals is None else str(refusals)


def _processes(line: SliceLine) -> str:
    pids = line.slice_.pids
    return "-" if pids is None else str(len(pids))


def _name_and_model(line: _CardLine) -> str:
    return f"{line.gpu.device_name}  {escape(line.gpu.product_name)}\n{line.gpu.uuid}"


def _card_memory(line: _CardLine) -> str:
    reading = line.reading
    if reading is None or reading.error is not None:
        return f"[red]{escape(reading.error or '') if reading else 'not read'}[/red]"
    return _memory(reading.memory_used_bytes or 0, line.gpu.memory_bytes)


def _card_memory_bar(line: _CardLine) -> RenderableType:
    if line.reading is None or line.reading.error is not None:
        return ""
    return _bar(line.reading.memory_used_bytes or 0, line.gpu.memory_bytes)


def _given_out(line: _CardLine) -> str:
    memory = sum(card.memory_limit_bytes for card in line.slices) // MIB
    return f"{memory} MiB, {sum(card.cores_percent for card in line.slices)} %"


def _card_busy(line: _CardLine) -> str:
    busy = line.reading.utilization_percent if line.reading else None
    return "-" if busy is None else f"{busy} %"


def _card_busy_bar(line: _CardLine) -> RenderableType:
    return _bar((line.reading.utilization_percent if line.reading else None) or 0, 100)


def _memory(used: int, whole: int) -> str:
    return f"{used // MIB} / {whole // MIB} MiB"


def _bar(value: float, whole: float) -> ProgressBar:
    return ProgressBar(total=max(whole, 1), completed=min(value, whole), width=_BAR_CHARS)


_SLICE: Columns[SliceLine] = (
    ("card", lambda line: line.card),
    ("namespace", lambda line: line.slice_.namespace),
    ("pod", _pods),
    ("container", _containers),
    ("claim / request", _claim),
    ("memory", _slice_memory),
    ("", _slice_memory_bar),
    ("cores", _cores),
    ("busy", _slice_busy),
    ("", _slice_busy_bar),
    ("waited", _waited),
    ("refused", _refused),
    ("procs", _processes),
)
_SLICE_SHORT: Columns[SliceLine] = (
    ("card", lambda line: line.card),
    ("pod, container, claim / request", _whose_and_refused),
    ("memory", _slice_memory),
    ("", _slice_memory_bar),
    ("busy", _busy_of_cores),
    ("", _slice_busy_bar),
)
_SLICE_FOLDED: Columns[SliceLine] = (
    ("card", lambda line: line.card),
    ("pod, container, claim / request", _whose_and_refused),
    ("memory", lambda line: _slice_memory(line).replace(" / ", " /\n")),
    ("busy", lambda line: _busy_of_cores(line).replace(" of ", " of\n")),
)
_CARD: Columns[_CardLine] = (
    ("card", lambda line: line.gpu.device_name),
    ("model", lambda line: escape(line.gpu.product_name)),
    ("memory", _card_memory),
    ("", _card_memory_bar),
    ("given out", _given_out),
    ("busy", _card_busy),
    ("", _card_busy_bar),
    ("slices", lambda line: str(len(line.slices))),
    ("UUID", lambda line: line.gpu.uuid),
)
_CARD_SHORT: Columns[_CardLine] = (
    ("card", _name_and_model),
    ("memory", _card_memory),
    ("", _card_memory_bar),
    ("given out", _given_out),
    ("busy", _card_busy),
    ("", _card_busy_bar),
)
_CARD_FOLDED: Columns[_CardLine] = (
    ("card", _name_and_model),
    ("memory", lambda line: _card_memory(line).replace(" / ", " /\n")),
    ("given out", lambda line: _given_out(line).replace(", ", ",\n")),
    ("busy", _card_busy),
)
