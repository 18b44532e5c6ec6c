"""Control groups as the bed's means to know its own processes.

Everything the bed starts is put into a cgroup below the bed's own; children stay in it, so shims,
pause processes and containers are found however they were orphaned.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from tests.cluster.errors import BedError

_KILL_TIMEOUT_S = 20.0
_POLL_S = 0.02


def hierarchies() -> list[Path]:
    """Mount points of all cgroup hierarchies, of both versions."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    fields = [line.split() for line in lines]
    return [Path(mount[1]) for mount in fields if mount[2] in {"cgroup", "cgroup2"}]


def create(cgroup: str) -> None:
    """Make `cgroup` in every hierarchy, ready to take processes."""
    for hierarchy in hierarchies():
        group = hierarchy
        for part in cgroup.strip("/").split("/"):
            group /= part
            group.mkdir(exist_ok=True)
            _inherit_cpuset(group)


def _inherit_cpuset(group: Path) -> None:
    # On version 1 a new cpuset is empty, and a process cannot enter it.
    for name in ("cpuset.cpus", "cpuset.mems"):
        own, parents = group / name, group.parent / name
        if own.exists() and parents.exists() and not own.read_text().strip():
            own.write_text(parents.read_text())


def procs_file(cgroup: str) -> Path:
    """The file into which a process writes its PID to enter `cgroup`."""
    return _tracking_hierarchy() / cgroup.lstrip("/") / "cgroup.procs"


def processes(cgroup: str) -> set[int]:
    """PIDs in `cgroup` and below it, in any hierarchy."""
    return {
        int(pid)
        for group in _groups(cgroup)
        for pid in _read(group / "cgroup.procs").split()
        if pid != "0"
    }


def kill(cgroup: str) -> None:
    """SIGKILL everything in `cgroup` and below, and return when it is gone.

    Raises:
        BedError: a process outlived SIGKILL.
    """
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    killed: set[int] = set()
    while pids := processes(cgroup):
        killed |= pids
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise BedError(f"processes {sorted(pids)} of cgroup {cgroup} do not end on SIGKILL")
        time.sleep(_POLL_S)
    for pid in killed:
        reap(pid, options=0)


def remove(cgroup: str) -> None:
    """Remove `cgroup` and all below it from every hierarchy; it must hold no process."""
    for group in _groups(cgroup):
        _remove_group(group)


def _remove_group(group: Path) -> None:
    # The kernel lets go of a dead process's group a moment after the process is gone.
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    while True:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise BedError(f"cannot remove cgroup {group}: {error}") from error
            time.sleep(_POLL_S)
        else:
            return


def _groups(cgroup: str) -> list[Path]:
    """Folders of `cgroup` and all below it in every hierarchy, deepest first."""
    tops = [hierarchy / cgroup.lstrip("/") for hierarchy in hierarchies()]
    return [
        Path(folder)
        for top in tops
        for folder, _, _ in os.walk(top, topdown=False)
        if Path(folder).is_dir()
    ]


def _tracking_hierarchy() -> Path:
    # On version 1 every controller has a hierarchy; any one will do, and `pids` has no knobs
    # that a new group must have set first.
    found = {mount.name: mount for mount in hierarchies()}
    if chosen := found.get("pids") or found.get("cgroup") or found.get("unified"):
        return chosen
    raise BedError("no cgroup hierarchy with `pids` is mounted below /sys/fs/cgroup")


def reap(pid: int, options: int = os.WNOHANG) -> None:
    """Collect the exit status of `pid` where it is our own child; `options` as for waitpid(2)."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, options)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (FileNotFoundError, OSError):
        return ""
