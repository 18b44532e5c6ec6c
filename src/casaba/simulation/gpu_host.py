"""A host with virtual cards: the settings of native/simulated_driver.

Cards of different processes are the same as long as they share the folder.
"""

import hashlib
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from casaba.errors import InvalidInput
from casaba.node.files import explained, write_whole

MODELS = ("A10", "T4", "L4", "H200")

SCENARIO_UUID = "GPU-13e066b9-098c-8932-9d26-ea75a943d6ba"
"""The A10 of the documents."""

DRIVER_VERSION = "580.126.09"
CUDA_VERSION = 13000

_SETTINGS_FILE = "cards.conf"
_NAMESPACE = uuid.UUID("8f14e45f-ceea-467f-a0e6-c1a0f3e0a9d5")


@dataclass(frozen=True, kw_only=True)
class VirtualCard:
    """One virtual card."""

    model: str
    uuid: str
    bus_id: str
    """PCI address with a domain of eight digits, NVML's form."""
    minor: int
    context_mib: int = 0
    """What each CUDA context takes of the card, in MiB."""


def virtual_cards(models: Sequence[str], context_mib: int = 0) -> tuple[VirtualCard, ...]:
    """Cards with minors 0, 1, … and UUIDs that are always the same; raises InvalidInput."""
    for model in models:
        if model not in MODELS:
            raise InvalidInput(f"no virtual card {model!r}; there are {', '.join(MODELS)}")
    return tuple(
        VirtualCard(
            model=model,
            uuid=_card_uuid(model, minor),
            bus_id=f"00000000:00:{minor + 3:02x}.0",
            minor=minor,
            context_mib=context_mib,
        )
        for minor, model in enumerate(models)
    )


def _card_uuid(model: str, minor: int) -> str:
    if (model, minor) == ("A10", 0):
        return SCENARIO_UUID
    return f"GPU-{uuid.uuid5(_NAMESPACE, f'{model}/{minor}')}"


def cards_conf(cards: Sequence[VirtualCard]) -> str:
    """The text of the settings file of native/simulated_driver."""
    lines = [f"driver_version = {DRIVER_VERSION}", f"cuda_version = {CUDA_VERSION}"]
    for card in cards:
        lines += [
            "[card]",
            f"model = {card.model}",
            f"uuid = {card.uuid}",
            f"bus_id = {card.bus_id}",
            f"minor = {card.minor}",
            f"context_mib = {card.context_mib}",
        ]
    return "\n".join(lines) + "\n"


def host_folder(parent: Path, model: str, driver: Path) -> Path:
    """The folder of a host with one card of a model, for one build of the stand-in driver.

    Builds don't share: the layout of their state is their own. Raises HostError.
    """
    with explained("read", driver):
        build = hashlib.sha256((driver / "libcuda.so.1").read_bytes()).hexdigest()[:8]
    return parent / f"simulated-{model}-{build}"


def make_gpu_host(folder: Path, cards: Sequence[VirtualCard]) -> None:
    """Write the settings into a folder of its own, unless they are there; raises HostError.

    Processes of one host share the folder: it must not change while one of them lives.
    """
    path = folder / _SETTINGS_FILE
    if not path.exists():
        write_whole(path, cards_conf(cards).encode(), durable=False)


def make_sysfs(root: Path, cards: Sequence[VirtualCard]) -> None:
    """A sysfs that knows where the cards are on the PCI bus, and nothing else; raises HostError."""
    links = root / "bus" / "pci" / "devices"
    with explained("make", links):
        links.mkdir(parents=True, exist_ok=True)
        for card in cards:
            address = card.bus_id[4:]
            complex_ = f"pci{address.rpartition(':')[0]}"
            link = links / address
            if not link.is_symlink():
                link.symlink_to(f"../../../devices/{complex_}/{address}")


def enter_gpu_host(folder: Path) -> None:
    """Let this process, and its children, find the virtual cards when they load the driver."""
    os.environ["CASABA_SIMULATED_DIR"] = str(folder)
