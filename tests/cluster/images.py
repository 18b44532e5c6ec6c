"""Container images for the bed, made from files of this machine: no registry is needed.

An image is a docker-archive with one layer. The same files give the same archive, and its name in
the cache carries its hash.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.build import cache_folder
from tests.cluster.commands import run
from tests.cluster.errors import BedError

PAUSE = "bed.example/pause:1"
SAMPLE = "registry.example/gpushare-sample:benchmark"
_REPOSITORY = Path(__file__).parents[2]
_SAMPLES = _REPOSITORY / "build" / "native" / "samples"
_PACKAGED_SAMPLES = _REPOSITORY / "src/casaba/_native" / platform.machine() / "samples"
_WORKING_FOLDER = "/benchmark"
_MULTIARCH = f"{platform.machine()}-linux-gnu"
_GO_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# Programs built for an old glibc name libraries that are part of libc.so.6 by now.
_LIBRARIES = ("libc.so.6", "libdl.so.2", "libpthread.so.0", "libm.so.6", "librt.so.1")
_PAUSE_SOURCE = r"""
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void end(int number) { (void)number; _exit(0); }
static void reap(int number) { (void)number; while (waitpid(-1, 0, WNOHANG) > 0); }
int main(void) {
  signal(SIGINT, end); signal(SIGTERM, end); signal(SIGCHLD, reap);
  for (;;) pause();
}
"""


@dataclass(frozen=True)
class File:
    """A regular file of an image, or a symbolic link if `link` is set."""

    content: bytes = b""
    mode: int = 0o644
    link: str = ""


@dataclass(frozen=True)
class Image:
    """What an image holds and how it starts.

    Attributes:
        name: any name, also one of a registry that is never asked.
        files: by path without a leading slash; folders are made as needed.
        config: the image's own run settings, as in the OCI image specification.
    """

    name: str
    files: Mapping[str, File]
    folders: Mapping[str, int] = field(default_factory=dict)
    config: Mapping[str, object] = field(default_factory=dict)


def archives() -> list[Path]:
    """Archives of all images of the bed, made where the cache has none."""
    return [cached(image) for image in (pause(), sample())]


def cached(image: Image) -> Path:
    """The archive of `image` in the cache."""
    content = archive(image)
    digest = hashlib.sha256(content).hexdigest()[:12]
    folder = cache_folder() / "images"
    file = folder / f"{image.name.rpartition('/')[2].replace(':', '-')}-{digest}.tar"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as unfinished:
            unfinished.write(content)
        Path(unfinished.name).rename(file)
    return file


def archive(image: Image) -> bytes:
    """A docker-archive of one layer."""
    layer = _tar(image.files, image.folders)
    config = json.dumps(
        {
            "architecture": _GO_ARCHITECTURES[platform.machine()],
            "os": "linux",
            "config": image.config,
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"],
            },
        }
    ).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [image.name], "Layers": ["layer.tar"]}]
    return _tar(
        {
            config_name: File(config),
            "layer.tar": File(layer),
            "manifest.json": File(json.dumps(manifest).encode()),
        },
        {},
    )


def pause() -> Image:
    """The sandbox image: one static program that waits and collects orphans."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "pause.c", Path(folder) / "pause"
        source.write_text(_PAUSE_SOURCE)
        run(["gcc", "-Os", "-static", "-s", "-Wl,--build-id=none", f"-o{program}", str(source)])
        content = program.read_bytes()
    return Image(PAUSE, {"pause": File(content, 0o755)}, config={"Entrypoint": ["/pause"]})


def sample() -> Image:
    """The scenario's image: bash, busybox, glibc and the sample programs.

    Raises:
        BedError: the sample programs have not been built.
    """
    files = _base_files() | _libraries() | _busybox() | _sample_programs()
    return Image(
        SAMPLE,
        files,
        folders={"tmp": 0o1777, "root": 0o700, "run": 0o755, "var/tmp": 0o1777, "proc": 0o555},
        config={
            "Env": [f"PATH={_WORKING_FOLDER}:/usr/bin:/bin", "HOME=/root"],
            "WorkingDir": _WORKING_FOLDER,
            "Cmd": ["bash"],
        },
    )


def _base_files() -> dict[str, File]:
    return {
        "bin": File(link="usr/bin"),
        "sbin": File(link="usr/bin"),
        "lib": File(link="usr/lib"),
        "lib64": File(link="usr/lib64"),
        "usr/sbin": File(link="bin"),
        "usr/bin/bash": File(Path("/bin/bash").read_bytes(), 0o755),
        "etc/passwd": File(b"root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/sh\n"),
        "etc/group": File(b"root:x:0:\nnogroup:x:65534:\n"),
        "etc/ld.so.conf": File(f"/usr/lib/{_MULTIARCH}\n".encode()),
    }


def _libraries() -> dict[str, File]:
    """What bash is linked with, the parts of glibc, and the dynamic loader."""
    listed = [line.split() for line in run(["ldd", "/bin/bash"]).splitlines()]
    wanted = {words[2] for words in listed if "=>" in words}
    wanted |= {f"/lib/{_MULTIARCH}/{name}" for name in _LIBRARIES}
    files = {
        f"usr/lib/{_MULTIARCH}/{Path(path).name}": File(Path(path).read_bytes(), 0o755)
        for path in wanted
    }
    (loader,) = (words[0] for words in listed if words[0].startswith("/lib"))
    return files | {f"usr{loader}": File(Path(loader).read_bytes(), 0o755)}


def _busybox() -> dict[str, File]:
    applets = run(["busybox", "--list"]).split()
    program = Path("/bin/busybox").read_bytes()
    links = {f"usr/bin/{applet}": File(link="busybox") for applet in applets}
    return {**links, "usr/bin/busybox": File(program, 0o755)}


def _sample_programs() -> dict[str, File]:
    if not (_SAMPLES / "run.sh").is_file():
        raise BedError(f"no sample programs in {_SAMPLES}; run `make native` first")
    found = (file for samples in (_PACKAGED_SAMPLES, _SAMPLES) for file in samples.iterdir())
    folder = _WORKING_FOLDER.lstrip("/")
    return {
        f"{folder}/{file.name}": File(file.read_bytes(), 0o755) for file in found if file.is_file()
    }


def _tar(files: Mapping[str, File], folders: Mapping[str, int]) -> bytes:
    """A tar archive that depends on nothing but its arguments."""
    parents = {str(parent): 0o755 for path in files for parent in Path(path).parents}
    parents.pop(".", None)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, mode in sorted((parents | dict(folders)).items()):
            tar.addfile(_entry(path, tarfile.DIRTYPE, mode))
        for path, file in sorted(files.items()):
            entry = _entry(path, tarfile.SYMTYPE if file.link else tarfile.REGTYPE, file.mode)
            entry.linkname, entry.size = file.link, len(file.content)
            tar.addfile(entry, io.BytesIO(file.content))
    return packed.getvalue()


def _entry(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path)
    entry.type, entry.mode = kind, mode
    return entry
