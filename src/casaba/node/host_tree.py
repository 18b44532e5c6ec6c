"""A host whose root is seen at a folder: looks and removes there, and never comes out of it.

Links are followed as the host itself would follow them: `/` in them is the host's root
(chroot(2)). What is removed is never followed: of a link the link goes, and a folder on which
another file system is mounted stays.
"""

import errno
import os
import stat
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath

from casaba.node.files import explained

_LINKS_MAX = 40
"""As the kernel's own limit (path_resolution(7))."""

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class HostTree:
    """Paths that are given are the host's own. Blocking; every method raises HostError."""

    root: Path

    def names(self, folder: PurePath) -> tuple[str, ...]:
        """What lies in a folder; nothing where there is none."""
        with explained("read", self._seen(folder)), ExitStack() as stack:
            handle = self._open(folder, stack)
            if handle is None:
                return ()
            with os.scandir(handle) as entries:
                return tuple(sorted(entry.name for entry in entries))

    def leads_out(self, folder: PurePath) -> bool:
        """Whether a link on the way names a place that is not seen here."""
        with explained("read", self._seen(folder)), ExitStack() as stack:
            walk = _Walk(self.root, stack)
            return walk.to(folder) is None and walk.is_in_link

    def remove_file(self, path: PurePath) -> bool:
        """Remove one name that is no folder; False where there is none."""
        with explained("remove", self._seen(path)), ExitStack() as stack:
            handle = self._open(path.parent, stack)
            if handle is None:
                return False
            try:
                os.unlink(path.name, dir_fd=handle)
            except FileNotFoundError:
                return False
            return True

    def remove_folder(self, folder: PurePath) -> bool:
        """Remove a folder with all in it, or the link in its place; False where there is none."""
        with explained("remove", self._seen(folder)), ExitStack() as stack:
            above = self._open(folder.parent, stack)
            if above is None:
                return False
            try:
                status = os.stat(folder.name, dir_fd=above, follow_symlinks=False)
            except FileNotFoundError:
                return False
            _remove(folder.name, status, above, status.st_dev)
            return True

    def _open(self, folder: PurePath, stack: ExitStack) -> int | None:
        return _Walk(self.root, stack).to(folder)

    def _seen(self, path: PurePath) -> Path:
        return self.root / path.relative_to("/")


class _Walk:
    """From the root down, one name at a time."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self._stack = stack
        self._way = [self._kept(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))]
        self._links = 0
        self._after_link: int | None = None

    @property
    def is_in_link(self) -> bool:
        """Whether the last name that was looked for is one that a link names."""
        return self._after_link is not None

    def to(self, folder: PurePath) -> int | None:
        """The folder's descriptor; None when it is not there. Raises OSError."""
        names = list(reversed(folder.parts))
        while names:
            name = names.pop()
            if self._after_link is not None and len(names) < self._after_link:
                self._after_link = None
            if name == "/":
                del self._way[1:]
            elif name == "..":
                del self._way[max(1, len(self._way) - 1) :]
            elif not self._enter(name):
                target = self._target(name)
                if target is None:
                    return None
                if self._after_link is None:
                    self._after_link = len(names)
                names += reversed(target.parts)
        return self._way[-1]

    def _enter(self, name: str) -> bool:
        try:
            handle = os.open(name, _OPEN, dir_fd=self._way[-1])
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT):
                return False
            raise
        self._way.append(self._kept(handle))
        return True

    def _target(self, name: str) -> PurePath | None:
        """Where a link leads; None when there is nothing of that name."""
        try:
            target = PurePath(os.readlink(name, dir_fd=self._way[-1]))
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise NotADirectoryError(errno.ENOTDIR, f"{name} is no folder") from error
            raise
        self._links += 1
        if self._links > _LINKS_MAX:
            raise OSError(errno.ELOOP, f"more than {_LINKS_MAX} links")
        return target

    def _kept(self, handle: int) -> int:
        self._stack.callback(os.close, handle)
        return handle


def _remove(name: str, status: os.stat_result, above: int, device: int) -> None:
    """Remove a name with all below it. Raises OSError."""
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=above)
        return
    handle = os.open(name, _OPEN, dir_fd=above)
    try:
        if os.fstat(handle).st_dev != device:
            raise OSError(errno.EBUSY, f"another file system is mounted at {name}: unmount it")
        with os.scandir(handle) as entries:
            for entry in list(entries):
                _remove(entry.name, entry.stat(follow_symlinks=False), handle, device)
    finally:
        os.close(handle)
    os.rmdir(name, dir_fd=above)
