"""Which life of the machine this is."""

from pathlib import Path

from casaba.model.ids import BootId
from casaba.node.files import explained


def read_boot_id(path: Path) -> BootId:
    """The kernel's boot id; raises HostError."""
    with explained("read", path):
        return BootId(path.read_text().strip())
