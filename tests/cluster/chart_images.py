"""The chart's images, built by buildah from images/* as a person would, and kept as archives.

An archive's key is over the files that its Dockerfile copies, and the build sees no others. The
base comes from debootstrap, so no registry of images is asked; a mirror of Debian, PyPI and a proxy
of Go modules are.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from tests.cluster import packages
from tests.cluster.build import cache_folder, locked
from tests.cluster.commands import run
from tests.cluster.errors import BedError

NAMES = ("control-plane", "node-agent")
_REPOSITORY = Path(__file__).parents[2]
_SOURCES = _REPOSITORY / "images"
_CHART = _REPOSITORY / "charts" / "casaba" / "Chart.yaml"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_EPOCH_S = 1764547200
# Made by tests and builds beside the sources; the images make their own.
_LEFT_OUT = ("__pycache__", "_native")
_KEPT_ARCHIVES = 5
# About ten builds' worth; each build has some twenty layers of its own.
_KEPT_LAYERS = 200
# Whoever has an authority of their own for a proxy has it there.
_AUTHORITIES = Path("/etc/ssl/certs")
_TIMEOUT_S = 1800.0
_TOLD = 3000
_PROGRAMS = {"buildah": "buildah", "debootstrap": "debootstrap"}


def archives() -> list[Path]:
    """A docker-archive of each image, named as the chart's values name it.

    Raises:
        BedError: a package is missing, or a build failed; the message ends with what it said.
    """
    return [_cached(name) for name in NAMES]


def reference(name: str) -> str:
    """The image's name in the chart's values, with the chart's own version."""
    return f"casaba.dev/{name}:{yaml.safe_load(_CHART.read_text())['appVersion']}"


def key(name: str) -> str:
    """12 hex digits over all files that decide what the image holds."""
    told = hashlib.sha256(f"{reference(name)} {_architecture()} {_EPOCH_S}".encode())
    for file in (_SOURCES / "base/make", _dockerfile(name), *_copied_files(name)):
        content = file.read_bytes()
        executable = os.access(file, os.X_OK)
        head = f"\0{file.relative_to(_REPOSITORY)} {executable} {len(content)}\0"
        told.update(head.encode() + content)
    return told.hexdigest()[:12]


def _cached(name: str) -> Path:
    folder = cache_folder() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{name}-{key(name)}.tar"
    with locked(folder / f"{name}.lock"):
        if not archive.exists():
            with locked(folder / "buildah.lock"):
                packages.install_missing(_PROGRAMS)
                _build(name, archive)
                _drop_old(folder, name)
        archive.touch()
    return archive


def _build(name: str, archive: Path) -> None:
    base = _base()
    started = time.monotonic()
    print(f"building image {name} (into {archive})", flush=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        context, unfinished = Path(folder) / "context", Path(folder) / "image.tar"
        _lay_out(name, context)
        _buildah(
            *("build", "--layers", "--isolation=chroot", f"--timestamp={_EPOCH_S}"),
            *_authorities(),
            *(f"--file={_dockerfile(name)}", f"--build-arg=BASE={base}"),
            *(f"--build-arg=TARGETARCH={_architecture()}", f"--tag={reference(name)}"),
            str(context),
        )
        _buildah(
            "push", "--quiet", reference(name), f"docker-archive:{unfinished}:{reference(name)}"
        )
        unfinished.rename(archive)
    print(f"built image {name} in {time.monotonic() - started:.0f} s", flush=True)


def _base() -> str:
    """The base's name in buildah's store; made there if it is not in it yet."""
    script = _SOURCES / "base/make"
    name = f"casaba.dev/base:{hashlib.sha256(script.read_bytes()).hexdigest()[:12]}"
    if name not in _buildah("images", "--format={{.Name}}:{{.Tag}}").split():
        started = time.monotonic()
        print("making the images' base by debootstrap", flush=True)
        _run([str(script), name])
        print(f"made the base in {time.monotonic() - started:.0f} s", flush=True)
    return name


def _lay_out(name: str, context: Path) -> None:
    """The files that the Dockerfile copies, with times that say nothing about this machine."""
    for file in _copied_files(name):
        place = context / file.relative_to(_REPOSITORY)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    for path in context.rglob("*"):
        os.utime(path, (_EPOCH_S, _EPOCH_S))


def _copied_files(name: str) -> list[Path]:
    return sorted({file for source in _copied(name) for file in _files(_REPOSITORY / source)})


def _copied(name: str) -> Iterator[str]:
    """Sources of the COPY instructions that read the context."""
    for line in _dockerfile(name).read_text().splitlines():
        words = line.split()
        if words[:1] == ["COPY"] and not words[1].startswith("--"):
            yield from words[1:-1]


def _files(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
    for path in source.iterdir() if source.is_dir() else ():
        if path.name not in _LEFT_OUT:
            yield from _files(path)


def _dockerfile(name: str) -> Path:
    return _SOURCES / name / "Dockerfile"


def _architecture() -> str:
    return _ARCHITECTURES[platform.machine()]


def _authorities() -> Sequence[str]:
    return (f"--volume={_AUTHORITIES}:{_AUTHORITIES}:ro",) if _AUTHORITIES.is_dir() else ()


def _drop_old(folder: Path, name: str) -> None:
    """What was built before goes: the archives by last use, the layers all at once."""
    found = sorted(folder.glob(f"{name}-*.tar"), key=lambda file: file.stat().st_mtime)
    for file in found[:-_KEPT_ARCHIVES]:
        file.unlink()
    if len(_buildah("images", "--all", "--quiet").split()) > _KEPT_LAYERS:
        # Builds that were killed left containers, which hold layers; nobody else builds now.
        _buildah("rm", "--all")
        _buildah("rmi", "--prune")


def _buildah(*arguments: str) -> str:
    return _run(["buildah", *arguments])


def _run(command: Sequence[str]) -> str:
    store = cache_folder() / "containers"
    store.mkdir(exist_ok=True)
    settings = store / "storage.conf"
    settings.write_text(
        "[storage]\n"
        'driver = "overlay"\n'
        f'graphroot = "{store / "storage"}"\n'
        f'runroot = "{store / "run"}"\n'
    )
    variables = {
        "CONTAINERS_STORAGE_CONF": str(settings),
        "SOURCE_DATE_EPOCH": str(_EPOCH_S),
        "TMPDIR": str(store),
    }
    try:
        return run(command, environment=os.environ | variables, timeout_s=_TIMEOUT_S)
    except BedError as error:
        raise BedError(f"building the chart's images failed: …{str(error)[-_TOLD:]}") from None
