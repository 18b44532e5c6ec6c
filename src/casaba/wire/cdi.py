"""CDI specs that casaba writes (Container Device Interface 0.5.0 and later).

The card's own spec comes from nvidia-ctk; here are the guard's and the claims'.
"""

from dataclasses import dataclass
from pathlib import PurePath

import msgspec

from casaba.model.ids import CdiId, ClaimUid, GpuUuid, RequestName

VENDOR = "casaba.dev"
CARD_CLASS = "card"
GUARD_CLASS = "guard"
SCHEDULE_CLASS = "schedule"
CLAIM_CLASS = "claim"

CDI_VERSION = "0.5.0"

CARD_SPEC_FILE = f"{VENDOR}-{CARD_CLASS}.json"
GUARD_SPEC_FILE = f"{VENDOR}-{GUARD_CLASS}.json"
SCHEDULE_SPEC_FILE = f"{VENDOR}-{SCHEDULE_CLASS}.json"


@dataclass(frozen=True, kw_only=True)
class BindMount:
    """A file of the host at a path in the container."""

    host: PurePath
    container: PurePath
    writable: bool = False

    def spec(self) -> dict[str, object]:
        """The entry of containerEdits.mounts."""
        access = "rw" if self.writable else "ro"
        return {
            "hostPath": str(self.host),
            "containerPath": str(self.container),
            "options": [access, "nosuid", "nodev", "bind"],
        }


@dataclass(frozen=True, kw_only=True)
class CdiDevice:
    """One device of a spec: its name and what it mounts."""

    name: str
    mounts: tuple[BindMount, ...]

    def spec(self) -> dict[str, object]:
        """The entry of devices."""
        return {
            "name": self.name,
            "containerEdits": {"mounts": [mount.spec() for mount in self.mounts]},
        }


def build_spec(device_class: str, devices: tuple[CdiDevice, ...]) -> bytes:
    """The bytes of a spec file `casaba.dev/<device_class>`."""
    spec = {
        "cdiVersion": CDI_VERSION,
        "kind": f"{VENDOR}/{device_class}",
        "devices": [device.spec() for device in devices],
    }
    return msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n"


def card_id(gpu: GpuUuid) -> CdiId:
    """The card itself: nodes, driver libraries and hooks, as nvidia-ctk wrote them."""
    return CdiId(f"{VENDOR}/{CARD_CLASS}={gpu}")


def guard_id(version: str) -> CdiId:
    """The guard and the loader's preload file."""
    return CdiId(f"{VENDOR}/{GUARD_CLASS}={version}")


def schedule_id(gpu: GpuUuid) -> CdiId:
    """The schedule that the tenants of a card share."""
    return CdiId(f"{VENDOR}/{SCHEDULE_CLASS}={gpu}")


def claim_device_name(claim: ClaimUid, request: RequestName) -> str:
    """The device of one budget; never used again, since a UID is not."""
    return f"{claim}-{request}"


def claim_id(claim: ClaimUid, request: RequestName) -> CdiId:
    """Policy file and region of one budget."""
    return CdiId(f"{VENDOR}/{CLAIM_CLASS}={claim_device_name(claim, request)}")


def claim_spec_file(claim: ClaimUid) -> str:
    """Name of the spec file with the devices of all requests of a claim."""
    return f"{VENDOR}-{CLAIM_CLASS}_{claim}.json"


def claim_of_spec_file(name: str) -> str | None:
    """The claim UID in the name of a claim's spec file; None for other files."""
    prefix = f"{VENDOR}-{CLAIM_CLASS}_"
    if name.startswith(prefix) and name.endswith(".json"):
        return name.removeprefix(prefix).removesuffix(".json")
    return None


def is_unfinished_spec(name: str) -> bool:
    """Whether a file is one of our specs that was never written to its end."""
    return name.startswith(f".{VENDOR}-")
