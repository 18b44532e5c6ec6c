"""Whether the driver below a root is still the one that was looked at."""

from dataclasses import dataclass
from pathlib import Path

from casaba.errors import HostError
from casaba.node.nvidia.nvml import find_library


@dataclass(frozen=True, kw_only=True)
class DriverMark:
    """Differs for another driver, and for the same one in another container's root."""

    library: str
    device: int
    inode: int
    changed_ns: int


def driver_mark(driver_root: Path) -> DriverMark | None:
    """The mark of the driver that is there now; None when there is none."""
    try:
        library = find_library(driver_root)
        resolved = library.resolve(strict=True)
        status = resolved.stat()
    except (HostError, OSError, RuntimeError):  # RuntimeError: links that lead in a circle
        return None
    return DriverMark(
        library=str(resolved),
        device=status.st_dev,
        inode=status.st_ino,
        changed_ns=status.st_mtime_ns,
    )
