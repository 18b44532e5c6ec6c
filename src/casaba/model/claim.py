"""An allocated ResourceClaim, reduced to what this node's driver must know."""

from dataclasses import dataclass

from casaba.model.ids import ClaimUid, DeviceName, RequestName
from casaba.model.slice_parameters import UNSAID, SliceParameters


@dataclass(frozen=True, kw_only=True)
class Share:
    """One allocation result: a part of one card for one request."""

    request: RequestName
    pool: str
    device: DeviceName
    share_id: str | None
    """The scheduler's id of this share; None for a device given whole."""
    memory_bytes: int
    cores_percent: int
    parameters: SliceParameters = UNSAID
    """What class and claim say of the request; the same for all shares of one request."""


@dataclass(frozen=True, kw_only=True)
class AllocatedClaim:
    """A claim with all its shares of one driver."""

    namespace: str
    name: str
    uid: ClaimUid
    shares: tuple[Share, ...]
