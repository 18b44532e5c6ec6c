"""The processes behind NVML's PIDs, and the containers that have a budget, by what /proc says.

A container of Kubernetes has its termination log mounted from
`<kubelet>/pods/<pod uid>/containers/<name>/<random>`, and each of its budgets below the guard's
fixed folder. Reading another process's mounts takes the host's PID namespace and CAP_SYS_PTRACE.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from casaba.model.gpu_process import ContainerMounts, GpuProcess
from casaba.settings import _host_paths as fixed
from casaba.settings.host_paths import CONTAINER_RUN_DIR

SETTLED_S = 30.0
"""A process older than this has entered its container, if it ever does."""

_CONTAINER = re.compile(
    r"/pods/([0-9a-f-]{36})/containers/([a-z0-9]([-a-z0-9]*[a-z0-9])?)/[0-9a-f]+$"
)
_BUDGET = re.compile(
    re.escape(str(CONTAINER_RUN_DIR / fixed.CLAIMS)) + rf"/([^/]+)/([^/]+)/{fixed.POLICY}$"
)
_NAMESPACE = re.compile(r":\[(\d+)\]$")
_ROOT, _MOUNT_POINT = 3, 4
"""Fields of /proc/PID/mountinfo, proc(5)."""

_START_TIME = 19
"""Field of /proc/PID/stat after the command, proc(5): ticks since the machine's start."""


@dataclass(frozen=True)
class _Seen:
    started_ticks: int
    process: GpuProcess


class ProcessReader:
    """Reads /proc; what a process has once is not read again. Blocking; for one thread at a time.

    What may not be read, or ends meanwhile, is left out.
    """

    def __init__(self, proc_root: Path) -> None:
        self._root = proc_root
        self._seen: dict[int, _Seen] = {}

    def processes(self, pids: Iterable[int]) -> tuple[GpuProcess, ...]:
        """The processes with these PIDs."""
        found = (self._process(pid) for pid in sorted(set(pids)))
        return tuple(process for process in found if process is not None)

    def all_containers(self) -> Iterator[ContainerMounts]:
        """The mounts of all containers with a budget, of whatever process lives in them.

        Forgets the processes that have ended.
        """
        pids = [int(path.name) for path in self._root.iterdir() if path.name.isdecimal()]
        self.forget_all_but(pids)
        for process in self.processes(pids):
            if process.mounts is not None:
                yield process.mounts

    def forget_all_but(self, pids: Iterable[int]) -> None:
        """Keep only what is known of these."""
        living = set(pids)
        self._seen = {pid: seen for pid, seen in self._seen.items() if pid in living}

    def _process(self, pid: int) -> GpuProcess | None:
        try:
            started = self._started_ticks(pid)
            known = self._seen.get(pid)
            if known is not None and known.started_ticks == started:
                return known.process
            process = self._read(pid)
        except (OSError, ValueError, IndexError):
            return None
        if process.mounts is not None or _age_s(started) > SETTLED_S:
            self._seen[pid] = _Seen(started, process)
        return process

    def _started_ticks(self, pid: int) -> int:
        stat = (self._root / str(pid) / "stat").read_bytes()
        return int(stat.rpartition(b")")[2].split()[_START_TIME])

    def _read(self, pid: int) -> GpuProcess:
        folder = self._root / str(pid)
        mounts = container_mounts((folder / "mountinfo").read_text(errors="replace"))
        inner = _inner_pid((folder / "status").read_text(errors="replace")) if mounts else None
        namespace = _namespace(folder / "ns" / "pid") if mounts else 0
        return GpuProcess(pid=pid, inner_pid=inner or pid, pid_namespace=namespace, mounts=mounts)


def container_mounts(mountinfo: str) -> ContainerMounts | None:
    """What a process's mounts tell of its container; None without a budget."""
    pod_uid, container, budgets = "", "", set()
    for line in mountinfo.splitlines():
        fields = line.split(" ", _MOUNT_POINT + 1)
        if len(fields) <= _MOUNT_POINT:
            continue
        if found := _CONTAINER.search(fields[_ROOT]):
            pod_uid, container = found[1], found[2]
        elif found := _BUDGET.match(fields[_MOUNT_POINT]):
            budgets.add((found[1], found[2]))
    if not budgets:
        return None
    return ContainerMounts(pod_uid=pod_uid, container=container, budgets=frozenset(budgets))


def _inner_pid(status: str) -> int | None:
    """The PID in the innermost namespace, from the line NSpid."""
    for line in status.splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return None


def _namespace(link: Path) -> int:
    """The inode in a link to a namespace, such as pid:[4026531836]; 0 where there is none."""
    try:
        found = _NAMESPACE.search(str(link.readlink()))
    except OSError:
        return 0
    return int(found[1]) if found else 0


def _age_s(started_ticks: int) -> float:
    now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    return now_s - started_ticks / os.sysconf("SC_CLK_TCK")
