"""What a node's report looks like in terminals of all sizes: names stay readable, nothing is lost
without a word."""

import io
import re

import pytest
from msgspec import structs
from rich.console import Console
from rich.live import Live

from casaba.cli.smi_node import NodeView
from casaba.cli.smi_watch import checked_pause
from casaba.errors import InvalidInput
from casaba.model.card_reading import CardReading
from casaba.model.gpu import Gpu
from casaba.model.node_use import NodeUse
from casaba.model.slice_use import SliceUse
from casaba.wire.node_report import NodeReport
from tests.unit.policy.test_usage_metrics import joined, pod_of
from tests.unit.policy.usages import budget, process
from tests.unit.values import A10

POD = "a-rather-long-pod-name-7f8d9c-x2x4z"
(SLICE,) = joined([pod_of(POD, "main")], budget(process()))


def report(*slices: SliceUse, gpus: tuple[Gpu, ...] = (A10,)) -> NodeReport:
    use = NodeUse(
        node="edge-1",
        gpus=gpus,
        readings={gpu.uuid: CardReading(gpu=gpu.uuid, memory_used_bytes=1) for gpu in gpus},
        slices=slices,
        guards=(),
        foreign={},
        boot_time_ns=10**12,
        pods_told=True,
    )
    return NodeReport(release="0.1", guard="0.1", registered=True, problems=(), use=use)


def shown(told: NodeReport, columns: int) -> list[str]:
    """The lines of a print."""
    file = io.StringIO()
    Console(file=file, width=columns).print(NodeView(report=told), highlight=False)
    return file.getvalue().splitlines()


def on_screen(told: NodeReport, columns: int, lines: int) -> str:
    """A screen of so many lines, as `--watch` fills it."""
    file = io.StringIO()
    console = Console(file=file, width=columns, height=lines, force_terminal=True)
    view = NodeView(report=told, fills_screen=True)
    with Live(view, console=console, screen=True, auto_refresh=False) as live:
        file.seek(0)
        file.truncate()
        live.update(view, refresh=True)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue())


def columns_of(lines: list[str]) -> list[str]:
    """The text of each column of each table, as if it were not folded."""
    rows = [line.strip("│").split("│") for line in lines if line.startswith("│")]
    cells = [[cell.strip() for cell in row] for row in rows]
    widths = {len(row) for row in cells}
    return [
        "".join(column)
        for width in widths
        for column in zip(*(row for row in cells if len(row) == width), strict=True)
    ]


@pytest.mark.parametrize("columns", [80, 100, 120, 160, 200, 1000])
def test_pod_container_and_claim_can_be_read_in_any_terminal(columns: int) -> None:
    lines = shown(report(SLICE), columns)
    assert max(map(len, lines)) <= columns
    text = " ".join(columns_of(lines))
    for part in (POD, "main", "claim / gpu", "hami-gpu-0", A10.uuid, A10.product_name):
        assert part in text, part


def test_nothing_is_cut_even_where_it_is_folded() -> None:
    for columns in (30, 40, 60):
        assert "…" not in "".join(shown(report(SLICE), columns))


def test_what_was_refused_is_seen_with_and_without_a_column() -> None:
    assert any("refused" in line for line in shown(report(SLICE), 200))
    assert any("2 refused" in line for line in shown(report(SLICE), 80))


@pytest.mark.parametrize("columns", [80, 200])
def test_slices_of_cards_that_the_driver_does_not_show(columns: int) -> None:
    bare = structs.replace(SLICE, claim="bare", cards=())
    lines = shown(report(SLICE, bare, gpus=()), columns)
    assert any("no cards" in line for line in lines)
    assert not any("no slices" in line for line in lines)
    text = " ".join(columns_of(lines))
    for part in (A10.uuid, POD, "claim / gpu", "bare / gpu"):
        assert part in text, part


def test_a_node_without_anything() -> None:
    text = "\n".join(shown(report(gpus=()), 80))
    assert "no cards" in text
    assert "no slices" in text


@pytest.mark.parametrize(("columns", "lines"), [(200, 40), (80, 24), (120, 30)])
def test_a_screen_says_how_many_slices_it_does_not_show(columns: int, lines: int) -> None:
    names = [f"claim-{number:03}" for number in range(200)]
    told = report(*(structs.replace(SLICE, claim=name) for name in names))
    text = on_screen(told, columns, lines)
    count = sum(f"{name} / gpu" in text for name in names)
    assert 0 < count < 200
    assert f"{200 - count} more slices" in text


def test_a_screen_with_room_shows_all_and_says_nothing() -> None:
    text = on_screen(report(SLICE), 200, 40)
    assert POD in text
    assert "more" not in text


def test_a_screen_that_is_too_small_for_anything_says_so() -> None:
    assert "more lines" in on_screen(report(SLICE), 80, 4)


@pytest.mark.parametrize("pause", [float("nan"), float("inf"), float("-inf"), 0, 0.09, 1e300])
def test_a_pause_that_is_none_is_refused(pause: float) -> None:
    with pytest.raises(InvalidInput, match="--watch"):
        checked_pause(pause)
