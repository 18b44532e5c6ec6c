"""Runs one container: a program of its own between the kubelet and the container's processes.

Started as `python -I -S container_shim.py DESCRIPTOR`; knows nothing of the rest of casaba. It gets
its order as one line of JSON on stdin, and then the names of signals, one a line. When stdin ends,
the kubelet is gone, and so is everything that the container started. On the descriptor it reports
`started`, or `failed <why>`. It exits as the container's first process did, with 128 + n for a
signal n. Whatever the container left running is killed then, as in a container.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

_STDIN = 0
_START_FAILED = 128

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWNS = 0x00020000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT = 1, 2, 4, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    call = (source.encode(), target.encode(), kind.encode(), flags, options.encode())
    _checked(_libc.mount(*call[:3], ctypes.c_ulong(flags), call[4]), f"mount {source} on {target}")


def _enter_namespace(mounts: list[dict[str, Any]], scratch: str) -> None:
    """A mount namespace of its own, in which the mounts are made. The host keeps as it is."""
    _checked(_libc.unshare(_CLONE_NEWNS), "unshare")
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    for mount in mounts:
        target = Path(mount["target"]).resolve()
        if not target.exists():
            _make_room(Path(mount["source"]), target, Path(scratch))
        _mount(mount["source"], str(target), "", _MS_BIND | _MS_REC)
        if mount["read_only"]:
            flags = _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV
            _mount("none", str(target), "", flags)


def _make_room(source: Path, target: Path, scratch: Path) -> None:
    """Make a mount point: in memory, which shows what the nearest folder has, and covers it."""
    folder = next(parent for parent in target.parents if parent.is_dir())
    if not _is_in_memory(folder):
        _cover(folder, scratch if folder == Path("/") else folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.mkdir()
    else:
        target.touch()


_in_memory: set[int] = set()
"""Device numbers of the file systems that `_cover` made."""


def _is_in_memory(folder: Path) -> bool:
    return folder.stat().st_dev in _in_memory


def _cover(folder: Path, place: Path) -> None:
    """Mount a file system in memory on `place` that shows the entries of `folder`.

    The root can't be covered: its copy lies elsewhere, and becomes the root.
    """
    original = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    status, entries = os.fstat(original), list(folder.iterdir())
    kinds = [(entry.name, entry.is_symlink(), entry.is_dir()) for entry in entries]
    _mount("tmpfs", str(place), "tmpfs", _MS_NOSUID, f"mode={status.st_mode & 0o7777:o}")
    os.chown(place, status.st_uid, status.st_gid)
    _in_memory.add(place.stat().st_dev)
    for name, is_link, is_folder in kinds:
        _show(Path(f"/proc/self/fd/{original}") / name, place / name, is_link, is_folder)
    os.close(original)
    if place != folder:
        os.chroot(place)


def _show(original: Path, shown: Path, is_link: bool, is_folder: bool) -> None:
    if is_link:
        shown.symlink_to(original.readlink())
        return
    if is_folder:
        shown.mkdir()
    else:
        shown.touch()
    _mount(str(original), str(shown), "", _MS_BIND | _MS_REC)


def _become(order: dict[str, Any]) -> None:
    """The child's way into the container's program; returns only by raising."""
    os.setsid()
    if order["mounts"] is not None:
        _enter_namespace(order["mounts"], order["scratch"])
    if order["group"] is not None:
        os.setgroups([])
        os.setgid(order["group"])
    if order["user"] is not None:
        os.setuid(order["user"])
    # After the change of user, which takes it off again. The shim must not die alone.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir(order["folder"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), _STDIN)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):  # some belong to the C library
            signal.signal(number, signal.SIG_DFL)
    _exec(order["command"], order["environment"])


def _exec(command: list[str], environment: dict[str, str]) -> None:
    program = command[0]
    if "/" not in program:
        program = _found(program, environment.get("PATH", os.defpath))
    try:
        os.execve(program, command, environment)
    except OSError as error:
        why = error.strerror or str(error)
        raise OSError(f'exec: "{command[0]}": {why.lower()}') from error


def _found(name: str, path: str) -> str:
    for folder in path.split(":"):
        program = Path(folder or ".") / name
        if os.access(program, os.X_OK) and not program.is_dir():
            return str(program.absolute())
    raise OSError(f'exec: "{name}": executable file not found in $PATH')


def _start(order: dict[str, Any], report: int) -> int:
    """The container's first process; the report is made when its program runs, or can't."""
    os.set_inheritable(report, False)
    reading, writing = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        try:
            _become(order)
        except BaseException as error:
            os.write(writing, str(error).encode()[:4000])
        os._exit(_START_FAILED)
    os.close(writing)
    failure = os.read(reading, 4096)
    os.close(reading)
    os.write(report, b"failed " + failure if failure else b"started")
    os.close(report)
    return child


def _send(child: int, name: bytes) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, getattr(signal, name.decode()))


def _descendants(of: int) -> list[int]:
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_bytes().rpartition(b")")[2].split()
            parents[int(status.parent.name)] = int(fields[1])
    found, looked_at = [], [of]
    while looked_at:
        parent = looked_at.pop()
        children = [pid for pid, its in parents.items() if its == parent]
        found += children
        looked_at += children
    return found


def _kill_rest() -> None:
    """End whatever is left; orphans come to the shim, their subreaper."""
    while True:
        for pid in _descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _watch(child: int, ended: int) -> int:
    """Until the first process ends; its exit code. Orphans that end before it are collected."""
    pending = b""
    while True:
        ready, _, _ = select.select([_STDIN, ended], [], [])
        if _STDIN in ready:
            received = os.read(_STDIN, 4096)
            if not received:
                return _START_FAILED + signal.SIGKILL
            *names, pending = (pending + received).split(b"\n")
            for name in names:
                _send(child, name)
        if ended in ready:
            os.read(ended, 4096)
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == child:
                    return _code(found[1])


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _START_FAILED - code


def _read_order() -> dict[str, Any]:
    """The first line, byte by byte: names of signals may follow at once."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(_STDIN, 1)
        if not byte:
            sys.exit(_START_FAILED)
        line += byte
    order: dict[str, Any] = json.loads(line)
    return order


def main() -> int:
    """Run the container to its end."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    order = _read_order()
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    ended, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    code = _watch(_start(order, int(sys.argv[1])), ended)
    _kill_rest()
    return code


if __name__ == "__main__":
    sys.exit(main())
