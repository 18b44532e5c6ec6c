"""Debian packages that the bed's real parts come from."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.errors import BedError

PROVIDED_BY: dict[str, str] = {
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "busybox": "busybox-static",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "gcc": "gcc",
    "/usr/include/stdio.h": "libc6-dev",
    "make": "make",
}


def missing(provided_by: Mapping[str, str] = PROVIDED_BY) -> list[str]:
    """Packages of which a file is needed that is not there, in alphabetical order."""
    return sorted({package for file, package in provided_by.items() if not _present(file)})


def install_missing(provided_by: Mapping[str, str] = PROVIDED_BY) -> None:
    """Install what is missing with apt-get, saying so; by default what the bed needs.

    Args:
        provided_by: packages by a program, or a file's path, of theirs.

    Raises:
        BedError: apt-get is not there or refused.
    """
    wanted = missing(provided_by)
    if not wanted:
        return
    print(f"installing Debian packages: {' '.join(wanted)}", flush=True)
    if shutil.which("apt-get") is None:
        raise BedError(f"apt-get is not here; install these by hand: {' '.join(wanted)}")
    _apt_get("update", "-qq")
    _apt_get("install", "-y", "-qq", "--no-install-recommends", *wanted)
    if still := missing(provided_by):
        raise BedError(f"apt-get installed {wanted}, but files of {still} are still not there")


def _present(file: str) -> bool:
    return Path(file).exists() if file.startswith("/") else shutil.which(file) is not None


def _apt_get(*arguments: str) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        ["apt-get", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BedError(f"`apt-get {' '.join(arguments)}` failed:\n{done.stderr or done.stdout}")
