"""Which container of this node uses which claims, as the kubelet tells monitoring agents."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DeviceInUse:
    """A device that a driver prepared for a claim."""

    driver: str
    pool: str
    device: str
    cdi_ids: tuple[str, ...]
    share_id: str | None


@dataclass(frozen=True, kw_only=True)
class ClaimInUse:
    """A container's use of a claim.

    The devices are those of all requests of the claim, whichever the container uses.
    """

    namespace: str
    name: str
    devices: tuple[DeviceInUse, ...]


@dataclass(frozen=True, kw_only=True)
class PodInUse:
    """A pod, and the claims of each of its containers by name."""

    namespace: str
    name: str
    containers: tuple[tuple[str, tuple[ClaimInUse, ...]], ...]
