"""Files that are whole or not there, whatever happens in between."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from casaba.errors import HostError

PUBLIC_FILE = 0o644
PUBLIC_FOLDER = 0o755


@contextlib.contextmanager
def explained(action: str, path: Path) -> Iterator[None]:
    """Turn an OSError into a HostError that names what was done to which path."""
    try:
        yield
    except OSError as error:
        raise HostError(f"can't {action} {path}: {error.strerror or error}") from error


def write_whole(path: Path, content: bytes, *, mode: int = PUBLIC_FILE, durable: bool) -> None:
    """Replace a file by temporary file and rename; folders are made as needed.

    `durable` also flushes file and folder to the disk. Raises HostError; then the old file, or
    none, is still there.
    """
    with explained("write", path):
        make_folder(path.parent)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            _fill(handle, content, mode, durable)
            Path(temporary).rename(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        if durable:
            _flush_folder(path.parent)


def remove_unfinished(folder: Path, *, older_than_s: float) -> None:
    """Remove what killed writers left behind in a folder; raises HostError."""
    for path in folder.glob(".*"):
        with explained("remove", path), contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > older_than_s:
                path.unlink()


def _fill(handle: int, content: bytes, mode: int, durable: bool) -> None:
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fchmod(handle, mode)
        if durable:
            os.fdatasync(handle)
    finally:
        os.close(handle)


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder with its parents, readable by all whatever the umask."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with explained("make folder", folder):
        folder.mkdir(exist_ok=True)
        folder.chmod(PUBLIC_FOLDER)


def remove_file(path: Path) -> None:
    """Remove a file if it is there; raises HostError."""
    with explained("remove", path):
        path.unlink(missing_ok=True)


def remove_tree(folder: Path) -> None:
    """Remove a folder with all in it if it is there; raises HostError."""
    with explained("remove", folder):
        if folder.exists():
            shutil.rmtree(folder)
