"""What is below a folder in which others work meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def tree(root: Path) -> Iterator[Path]:
    """Every file and folder; of what comes and goes meanwhile some. No link is followed.

    Path.rglob raises where a folder goes between two of its steps.
    """
    for place, folders, files in os.walk(root):
        yield from (Path(place, name) for name in (*folders, *files))


def is_empty(folder: Path) -> bool:
    """Whether nothing is in it, or it is gone itself."""
    try:
        return not any(folder.iterdir())
    except FileNotFoundError:
        return True
