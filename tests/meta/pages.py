"""Pages of the documentation, and what their tables say."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "casaba"
PAGES = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
METRICS = (ROOT / "docs" / "metrics.md").read_text()
CLASSIC_PODS = (ROOT / "docs" / "classic-pods.md").read_text()


def chapter(page: str, title: str) -> str:
    """The text from a heading to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}\n", page, re.M)
    assert found, title
    rest = page[found.end() :]
    return re.split(rf"^#{{1,{len(found[1])}}} ", rest, maxsplit=1, flags=re.M)[0]


def tables(text: str, first_column: str) -> Iterator[list[str]]:
    """The rows of all tables with a heading that begins so, as cells."""
    wanted = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if not line.startswith("|"):
            wanted = False
        elif wanted and not set(line) <= set("|-: "):
            yield cells
        elif cells[0] == first_column:
            wanted = True


def names(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)
