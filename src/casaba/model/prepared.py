"""What a prepared claim comes to: the answer for the kubelet, and what the node must remember."""

from dataclasses import dataclass

from casaba.model.claim import AllocatedClaim
from casaba.model.ids import BootId, CdiId, DeviceName, RequestName


@dataclass(frozen=True, kw_only=True)
class PreparedDevice:
    """One device of NodePrepareResources' answer."""

    request: RequestName
    pool: str
    device: DeviceName
    cdi_ids: tuple[CdiId, ...]
    share_id: str | None


@dataclass(frozen=True, kw_only=True)
class CheckpointEntry:
    """A claim that this node promised to serve, and in which life of the machine."""

    claim: AllocatedClaim
    boot_id: BootId
