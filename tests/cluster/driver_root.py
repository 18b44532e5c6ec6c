"""A stand-in for the host's NVIDIA driver: the tree that the real toolkit looks at.

Only the two driver libraries and nvidia-smi are stand-ins; `nvidia-ctk` finds them in the places
and under the names that a real driver has.
"""

from __future__ import annotations

import os
import platform
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.errors import BedError
from tests.cluster.settings import Card

DRIVER_VERSION = "580.126.09"
_CUDA_VERSION = 13000  # major * 1000 + minor * 10
_REPOSITORY = Path(__file__).parents[2]
_LIBRARIES = ("libcuda", "libnvidia-ml")
# Character devices by (major, minor): 195 is NVIDIA's own, that of nvidia-uvm is dynamic.
_SHARED_DEVICES = {"nvidiactl": (195, 255), "nvidia-uvm": (510, 0), "nvidia-uvm-tools": (510, 1)}


def create(root: Path, cards: Sequence[Card]) -> None:
    """Lay out the driver root for `cards` in the empty folder `root`.

    Raises:
        BedError: the stand-ins have not been built.
    """
    stand_ins = _stand_ins()
    libraries = root / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
    for folder in (libraries, root / "usr/bin", root / "etc", root / "dev"):
        folder.mkdir(parents=True, exist_ok=True)
    for name in _LIBRARIES:
        versioned = libraries / f"{name}.so.{DRIVER_VERSION}"
        shutil.copy(stand_ins / f"{name}.so.1", versioned)
        (libraries / f"{name}.so.1").symlink_to(versioned.name)
    shutil.copy(stand_ins / "nvidia-smi", root / "usr/bin/nvidia-smi")
    (root / "usr/bin/nvidia-smi").chmod(0o755)
    (root / "etc/ld.so.conf").write_text(f"/usr/lib/{libraries.name}\n")
    subprocess.run(["/sbin/ldconfig", "-r", str(root)], capture_output=True, check=True)
    _make_devices(root / "dev", len(cards))


def create_sysfs(root: Path, cards: Sequence[Card]) -> None:
    """A sysfs that knows the cards' place on the PCI bus and nothing else."""
    by_address = root / "bus/pci/devices"
    by_address.mkdir(parents=True, exist_ok=True)
    for card in cards:
        pci_root = f"pci{card.bus_id.rpartition(':')[0]}"
        device = root / "devices" / pci_root / card.bus_id
        device.mkdir(parents=True)
        for name, value in {"numa_node": "0", "vendor": "0x10de", "class": "0x030200"}.items():
            (device / name).write_text(f"{value}\n")
        (by_address / card.bus_id).symlink_to(f"../../../devices/{pci_root}/{card.bus_id}")


def write_cards(folder: Path, cards: Sequence[Card]) -> None:
    """The virtual cards' settings, in the folder that all processes of the node share."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o1777)  # tenants that are not root keep the cards' state there too
    (folder / "cards.conf").write_text(cards_conf(cards))


def cards_conf(cards: Sequence[Card]) -> str:
    """cards.conf as native/simulated_driver/cards_conf.h describes it.

    A process sees only the cards whose device node its /dev holds, as on a real host; where /dev
    holds none, as on this machine outside containers, it sees all of them.
    """
    lines = [
        f"driver_version = {DRIVER_VERSION}",
        f"cuda_version = {_CUDA_VERSION}",
        "device_nodes = when_present",
    ]
    for minor, card in enumerate(cards):
        lines += [
            "[card]",
            f"model = {card.model}",
            f"uuid = {card.uuid}",
            f"bus_id = 0000{card.bus_id}",
            f"minor = {minor}",
        ]
    return "\n".join(lines) + "\n"


def _stand_ins() -> Path:
    folder = _REPOSITORY / "src/casaba/_native" / platform.machine() / "simulated_driver"
    wanted = [folder / f"{name}.so.1" for name in _LIBRARIES] + [folder / "nvidia-smi"]
    if absent := [str(file) for file in wanted if not file.is_file()]:
        raise BedError(f"not built: {', '.join(absent)}; run `make native` first")
    return folder


def _make_devices(folder: Path, cards: int) -> None:
    devices = {f"nvidia{minor}": (195, minor) for minor in range(cards)} | _SHARED_DEVICES
    for name, (major, minor) in devices.items():
        os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        (folder / name).chmod(0o666)
