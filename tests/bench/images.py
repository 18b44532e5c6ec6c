"""What the chart's images take on a node's disk, unpacked: the last state of every file once."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from tests.bench.figures import Figure
from tests.cluster import chart_images

_BOUNDS_MIB = {"control-plane": 215.0, "node-agent": 190.0}
FIGURES = tuple(f"image_mib_{name.replace('-', '_')}" for name in _BOUNDS_MIB)

_BLOCK_BYTES = 4096
_REMOVED = ".wh."
_EMPTIED = ".wh..wh..opq"


def measure() -> Iterator[Figure]:
    """One figure an image; builds what is not there."""
    archives = dict(zip(chart_images.NAMES, chart_images.archives(), strict=True))
    for figure, (name, bound) in zip(FIGURES, _BOUNDS_MIB.items(), strict=True):
        mib = unpacked_bytes(archives[name]) / 2**20
        yield Figure(name=figure, value=mib, unit="MiB", bound=bound)


def unpacked_bytes(archive: Path) -> int:
    """What `du` counts of a docker-archive's last state on a file system of 4 KiB blocks.

    Source: OCI image specification, "Image Layer Filesystem Changeset".
    """
    sizes: dict[PurePosixPath, int] = {}
    with tarfile.open(archive) as image:
        (manifest,) = json.loads(_file(image, "manifest.json").read())
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=_file(image, layer)) as changes:
                _apply(changes.getmembers(), sizes)
    return sum(sizes.values())


def _apply(changes: list[tarfile.TarInfo], sizes: dict[PurePosixPath, int]) -> None:
    """Whiteouts hide what is below their layer, so they come before its own files."""
    for change in changes:
        path = PurePosixPath("/", change.name)
        if path.name == _EMPTIED:
            _hide(sizes, path.parent, itself=False)
        elif path.name.startswith(_REMOVED):
            _hide(sizes, path.with_name(path.name.removeprefix(_REMOVED)), itself=True)
    for change in changes:
        path = PurePosixPath("/", change.name)
        if not path.name.startswith(_REMOVED):
            sizes[path] = _disk_bytes(change)


def _disk_bytes(entry: tarfile.TarInfo) -> int:
    if entry.isdir():
        return _BLOCK_BYTES
    return -(-entry.size // _BLOCK_BYTES) * _BLOCK_BYTES if entry.isfile() else 0


def _hide(sizes: dict[PurePosixPath, int], hidden: PurePosixPath, *, itself: bool) -> None:
    for path in [path for path in sizes if hidden in path.parents or (itself and path == hidden)]:
        del sizes[path]


def _file(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    content = archive.extractfile(name)
    if content is None:
        raise ValueError(f"{name} in the image is no file")
    return content
