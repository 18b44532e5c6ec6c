"""Kernel settings that a kubelet changes for the whole machine: remembered and put back."""

from __future__ import annotations

import json
from pathlib import Path

_CHANGED_BY_KUBELET = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
_SYS = Path("/proc/sys")


def remember(file: Path) -> None:
    """Write the present values to `file`, unless an earlier run's are there already."""
    if not file.exists():
        values = {name: (_SYS / name).read_text().strip() for name in _CHANGED_BY_KUBELET}
        file.write_text(json.dumps(values))


def restore(file: Path) -> None:
    """Put the remembered values back, if there are any."""
    if file.exists():
        for name, value in json.loads(file.read_text()).items():
            (_SYS / name).write_text(value)
