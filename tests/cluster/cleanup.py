"""Leaves nothing of a bed, also of one whose run was killed half-way."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.cluster import cgroups, mounts, network
from tests.cluster.errors import BedError

_MARK = "bed.json"


def remove_everything(bed_name: str, state: Path) -> None:
    """End the bed's processes by id; remove its mounts, namespaces, cgroups and files.

    In this order, since each keeps the next one busy. Running it twice does no harm.

    Raises:
        BedError: the name or the folder is not a bed's, or something would not go away.
    """
    check_removable(bed_name, state)
    cgroup = f"/{bed_name}"
    cgroups.kill(cgroup)
    mounts.unmount_below(state)
    network.remove(bed_name)
    cgroups.remove(cgroup)
    if state.exists():
        shutil.rmtree(state)


def check_removable(bed_name: str, state: Path) -> None:
    """
    Raises:
        BedError: `bed_name` or `state` could name something that is not the bed's.
    """
    # No hyphen: `name-` then is the prefix of this bed's namespaces only.
    if not re.fullmatch(r"[a-z][a-z0-9]{1,19}", bed_name):
        raise BedError(f"bed name {bed_name!r}: 2 to 20 lower-case letters and digits, please")
    if not state.is_absolute():
        raise BedError(f"--state {state} must be an absolute path")
    if state.exists() and any(state.iterdir()) and not (state / _MARK).exists():
        raise BedError(
            f"--state {state} holds files but no {_MARK}: it is not a bed's folder, and the bed"
            " would delete it; choose a new folder"
        )
