"""The size of an image is that of its last state: what a layer hides or replaces counts no more."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from tests.bench.images import unpacked_bytes

BLOCK = 4096
Entry = tuple[str, int | str | None]
"""A file with its bytes, a hard link with its target, a folder."""


def layer(*entries: Entry) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, what in entries:
            entry = tarfile.TarInfo(name)
            if isinstance(what, int):
                entry.size = what
            else:
                entry.type = tarfile.LNKTYPE if what else tarfile.DIRTYPE
                entry.linkname = what or ""
            archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    return content.getvalue()


@pytest.mark.parametrize(
    ("layers", "blocks"),
    [
        ([[("a", 1)]], 1),
        ([[("a", BLOCK)]], 1),
        ([[("a", BLOCK + 1)]], 2),
        ([[("a", 0)]], 0),
        ([[("d", None), ("d/a", 1)]], 2),
        ([[("a", BLOCK), ("b", "a")]], 1),
        ([[("a", 9 * BLOCK)], [("a", 1)]], 1),
        ([[("a", 1), ("b", 1)], [(".wh.a", 0)]], 1),
        ([[("d", None), ("d/a", 1)], [(".wh.d", 0)]], 0),
        ([[("d", None), ("d/a", 1)], [("d/new", 1), ("d/.wh..wh..opq", 0)]], 2),
        ([[("./d", None), ("./d/a", 1)], [("d/.wh.a", 0)]], 1),
        ([[("ab", 1)], [(".wh.a", 0)]], 1),
    ],
)
def test_what_counts(tmp_path: Path, layers: list[list[Entry]], blocks: int) -> None:
    archive = tmp_path / "image.tar"
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = json.dumps([{"Layers": names}]).encode()
    contents = {"manifest.json": manifest} | dict(
        zip(names, (layer(*entries) for entries in layers), strict=True)
    )
    with tarfile.open(archive, "w") as image:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            image.addfile(entry, io.BytesIO(content))
    assert unpacked_bytes(archive) == blocks * BLOCK
