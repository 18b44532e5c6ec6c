"""Long-running processes of the bed: started apart from ours, ended by PID and start time."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import cgroups
from tests.cluster.errors import BedError

_POLL_S = 0.02
_LOG_TAIL_LINES = 25
# A service's: a person's proxies, GODEBUG and the like do not reach the daemons.
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}
# Enters the cgroup before anything else runs: no child can be born outside of it.
_ENTER_CGROUP = 'echo $$ > "$0" && exec "$@"'


@dataclass(frozen=True)
class Daemon:
    """One long-running process.

    Attributes:
        name: names its pidfile and its log.
        argv: the command, with an absolute path first.
        folder: where `<name>.pid` and `<name>.log` are kept.
        cgroup: cgroup that it and all its children live in.
        environment: added to the plain one of a service.
        pass_descriptors: open descriptors of ours that it inherits under the same numbers.
    """

    name: str
    argv: Sequence[str]
    folder: Path
    cgroup: str
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_descriptors: Sequence[int] = ()

    @property
    def pidfile(self) -> Path:
        return self.folder / f"{self.name}.pid"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"


def start(daemon: Daemon) -> int:
    """Start it in a session of its own, its output appended to its log; its PID comes back."""
    daemon.folder.mkdir(parents=True, exist_ok=True)
    cgroups.create(daemon.cgroup)
    log = os.open(daemon.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        pid = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _ENTER_CGROUP, str(cgroups.procs_file(daemon.cgroup)), *daemon.argv],
            _ENVIRONMENT | dict(daemon.environment),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
                *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in daemon.pass_descriptors),
            ],
            setsid=True,
            setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGTERM],
            setsigmask=[],
        )
    finally:
        os.close(log)
    daemon.pidfile.write_text(json.dumps({"pid": pid, "started": _start_ticks(pid)}))
    return pid


def running(pidfile: Path) -> int | None:
    """PID of the process that the pidfile names, if that very process still runs."""
    try:
        told = json.loads(pidfile.read_text())
    except (FileNotFoundError, ValueError):
        return None
    pid = int(told["pid"])
    started = _start_ticks(pid)
    return pid if started is not None and started == told["started"] else None


def stop(daemon: Daemon, sig: signal.Signals = signal.SIGTERM, timeout_s: float = 10.0) -> None:
    """Send `sig`, then SIGKILL after `timeout_s`; return when the process is gone."""
    pid = running(daemon.pidfile)
    if pid is not None:
        os.kill(pid, sig)
        if not _gone_within(daemon.pidfile, timeout_s):
            os.kill(pid, signal.SIGKILL)
            if not _gone_within(daemon.pidfile, timeout_s):
                raise BedError(f"{daemon.name} (PID {pid}) does not end on SIGKILL")
    daemon.pidfile.unlink(missing_ok=True)


def require_running(daemon: Daemon) -> None:
    """
    Raises:
        BedError: it has ended; the message carries the end of its log.
    """
    if running(daemon.pidfile) is None:
        raise BedError(f"{daemon.name} has ended; the end of {daemon.log}:\n{log_tail(daemon.log)}")


def log_tail(log: Path, lines: int = _LOG_TAIL_LINES) -> str:
    """The last lines of a log; an empty text if there is none."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""


def _gone_within(pidfile: Path, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while running(pidfile) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _start_ticks(pid: int) -> int | None:
    """Start time of a live process in clock ticks since boot; None for a dead one."""
    cgroups.reap(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name is in parentheses and may itself hold spaces and parentheses.
    after_name = stat.rpartition(")")[2].split()
    if after_name[0] in {"Z", "X"} and not _has_threads(pid):
        return None
    return int(after_name[19])


def _has_threads(pid: int) -> bool:
    """Whether threads outlive the first one: until they have ended, its sockets are open."""
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False
