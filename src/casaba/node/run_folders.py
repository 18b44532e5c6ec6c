"""The user's own folder for local slices: one subfolder per run, alive while its lock is held.

The lock's descriptor is inherited by the whole process tree of a run, so the kernel itself keeps
track of who is alive; whoever starts a run later removes what is over.
"""

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from casaba.errors import CasabaError, HostError, InvalidInput
from casaba.node.files import explained, remove_tree

_LOCK = "alive"
_PREFIX = "run-"
_PRIVATE_FOLDER = 0o700
_HIGH_DESCRIPTOR = 400
"""Out of the way of programs that number their descriptors themselves."""
_BEING_MADE_S = 60.0


def own_folder(environment: Mapping[str, str]) -> Path:
    """`$XDG_RUNTIME_DIR/casaba`, else a folder below the temporary one, made if needed.

    A relative path counts as none (XDG Base Directory Specification). Raises HostError when the
    folder belongs to somebody else or others may enter it.
    """
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    fallback = Path(tempfile.gettempdir()) / f"casaba-{os.getuid()}"
    folder = Path(runtime) / "casaba" if runtime.startswith("/") else fallback
    with explained("make folder", folder):
        folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        status = folder.lstat()
    ours = status.st_uid == os.getuid() and stat.S_ISDIR(status.st_mode)
    if not ours or stat.S_IMODE(status.st_mode) & 0o077:
        raise HostError(
            f"{folder} is not a folder that only you may enter (owner {status.st_uid}, mode "
            f"{stat.S_IMODE(status.st_mode):o}): remove it, or set XDG_RUNTIME_DIR"
        )
    return folder


def new_run(folder: Path) -> Path:
    """A fresh folder for one run, held by this process and all that it starts.

    Raises HostError. The descriptor stays open on purpose, also across exec.
    """
    with explained("make a run's folder in", folder):
        run = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder))
        unlocked = run / f".{_LOCK}"
        handle = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
        high = fcntl.fcntl(handle, fcntl.F_DUPFD, _HIGH_DESCRIPTOR)
        os.close(handle)
        fcntl.flock(high, fcntl.LOCK_EX)
        unlocked.rename(run / _LOCK)
    return run


@contextmanager
def held_folder(parent: Path, name: str) -> Iterator[Path]:
    """A fresh folder of a fixed name, this process's as long as the block runs, then removed.

    It stays when the block raises CasabaError, for whoever wants to know why; the next holder
    removes it. Raises InvalidInput when another process holds it, and HostError.
    """
    folder, lock = parent / name, parent / f"{name}.lock"
    handle = _held(lock, name)
    try:
        remove_tree(folder)
        with explained("make folder", folder):
            folder.mkdir(mode=_PRIVATE_FOLDER)
        try:
            yield folder
        except CasabaError:
            raise
        except BaseException:
            _give_up(folder, lock)
            raise
        _give_up(folder, lock)
    finally:
        os.close(handle)


def _give_up(folder: Path, lock: Path) -> None:
    remove_tree(folder)
    lock.unlink(missing_ok=True)


def _held(lock: Path, name: str) -> int:
    """A descriptor that holds the file of that path, not one that its last holder just removed."""
    while True:
        with explained("open", lock):
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _hold(handle, name)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), lock.stat()):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _hold(handle: int, name: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(handle, 20, 0).decode(errors="replace").strip() or "unknown"
        raise InvalidInput(
            f"one called {name!r} runs already (process {holder}): end that with Ctrl-C, or "
            "choose another --name"
        ) from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)


def sweep_runs(folder: Path) -> None:
    """Remove the folders of runs of which no process is left; raises HostError."""
    for run in folder.glob(f"{_PREFIX}*"):
        if not _is_alive(run):
            remove_tree(run)


def run_folders(folder: Path) -> list[Path]:
    """The folders of runs of which a process is alive, oldest first."""
    alive = [run for run in folder.glob(f"{_PREFIX}*") if _is_alive(run)]
    return sorted(alive, key=lambda run: run.stat().st_mtime)


def _is_alive(run: Path) -> bool:
    """A run without its lock file is just being made, unless its maker was killed over it."""
    try:
        handle = os.open(run / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return run.exists() and time.time() - run.stat().st_mtime < _BEING_MADE_S
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
