"""What nvidia-ctk would say of the virtual cards, for machines that lack the toolkit or root.

Recorded, not invented: the cluster tests compare it with the toolkit's own. It has no device nodes
and no hooks: a virtual card needs neither, for it mounts the libraries under their final names.
"""

import platform
from collections.abc import Sequence
from pathlib import Path, PurePath

import msgspec

from casaba.simulation.gpu_host import VirtualCard
from casaba.wire import cdi

_PROGRAMS = PurePath("/usr/bin")
_MOUNT_OPTIONS = ("ro", "nosuid", "nodev", "rbind", "rprivate")
_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")


def library_folder() -> PurePath:
    """Where a container of this architecture finds the driver's libraries."""
    return PurePath("/usr/lib") / f"{platform.machine()}-linux-gnu"


def card_spec(cards: Sequence[VirtualCard], driver: Path) -> bytes:
    """The CDI spec of virtual cards; `driver` is the folder of the stand-in driver's files."""
    mounts = [_mount(driver / "nvidia-smi", _PROGRAMS)]
    mounts += [_mount(driver / name, library_folder()) for name in _LIBRARIES]
    names = [*(card.uuid for card in cards), "all"]
    edits = {
        "env": [f"NVIDIA_CTK_LIBCUDA_DIR={library_folder()}", "NVIDIA_VISIBLE_DEVICES=void"],
        "mounts": mounts,
    }
    spec = {
        "cdiVersion": cdi.CDI_VERSION,
        "kind": f"{cdi.VENDOR}/{cdi.CARD_CLASS}",
        "devices": [{"name": name, "containerEdits": {}} for name in names],
        "containerEdits": edits,
    }
    return msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n"


def _mount(file: Path, folder: PurePath) -> dict[str, object]:
    path = str(folder / file.name)
    return {"hostPath": str(file), "containerPath": path, "options": list(_MOUNT_OPTIONS)}
