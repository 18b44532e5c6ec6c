"""The stand-in driver at a node's own `/`, as a package of the distribution installs it.

The nodes share the machine's `/`, so each sees the driver's files laid over it in its own mount
namespace; the machine itself has nothing of them.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

# The cache is made in a folder of ours too: ldconfig keeps notes there.
_NOTES = "/var/cache/ldconfig"
_CACHE = "/etc/ld.so.cache"
_IN_DEV = ("pts", "shm", "mqueue", "hugepages")
_ASIDE = "/run/dev-aside"


def install(node_folder: Path, run: Callable[[str], None]) -> None:
    """Lay the node's driver over its `/`; `run` runs a shell script in the node's namespaces."""
    driver, etc = node_folder / "driver", node_folder / "etc"
    (etc / "ldconfig").mkdir(exist_ok=True)
    (etc / "ld.so.cache").touch()
    laid_over = (_overlay(driver, path) for path in _folders())
    run("\n".join([*laid_over, *_dev(driver), *_libraries_cached(etc)]))


def uninstall(run: Callable[[str], None]) -> None:
    """Take it away again; what still has a file open keeps it."""
    points = (_CACHE, _NOTES, "/dev", *_folders())
    run("\n".join(f"umount -n --lazy '{point}'" for point in points))


def _folders() -> tuple[str, ...]:
    return f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/bin"


def _overlay(driver: Path, path: str) -> str:
    return f"mount -n -t overlay -o 'ro,lowerdir={driver}{path}:{path}' casaba-driver '{path}'"


def _dev(driver: Path) -> list[str]:
    """What is mounted below it has to show again."""
    names = [name for name in _IN_DEV if Path("/dev", name).is_dir()]
    aside = [f"mkdir -p '{_ASIDE}/{name}'" for name in names]
    aside += [f"mount -n --bind '/dev/{name}' '{_ASIDE}/{name}'" for name in names]
    back = [f"mount -n --bind '{_ASIDE}/{name}' '/dev/{name}'" for name in names]
    gone = [f"umount -n '{_ASIDE}/{name}' && rmdir '{_ASIDE}/{name}'" for name in names]
    return [*aside, _overlay(driver, "/dev"), *back, *gone, f"rmdir '{_ASIDE}'"]


def _libraries_cached(etc: Path) -> list[str]:
    return [
        f"mount -n --bind '{etc}/ldconfig' '{_NOTES}'",
        f"/sbin/ldconfig -X -C '{etc}/ld.so.cache'",
        f"mount -n --bind '{etc}/ld.so.cache' '{_CACHE}'",
    ]
