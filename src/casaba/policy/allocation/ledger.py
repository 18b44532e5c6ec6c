"""Who holds what: by allocated claims, and tentatively while a solution is searched.

A device is held whole, or by shares of its capacity. Results with adminAccess hold nothing.
"""

from collections.abc import Iterable, Iterator

from casaba.model.quantity import quantity
from casaba.policy.allocation.capacity import Amounts
from casaba.policy.allocation.outcome import DeviceId
from casaba.wire.kubernetes import DeviceRequestAllocationResult, ResourceClaim


class Committed:
    """What the allocated claims of a cluster hold."""

    def __init__(self, claims: Iterable[ResourceClaim], *, shares: bool) -> None:
        """Without `shares`, a shared device counts as held whole (the feature gate is off)."""
        self.whole: set[DeviceId] = set()
        self.shared: set[DeviceId] = set()
        self._shares: dict[DeviceId, list[Amounts]] = {}
        for claim in claims:
            if claim.status.allocation is not None:
                for result in claim.status.allocation.devices.results:
                    self._add(result, shares)

    def _add(self, result: DeviceRequestAllocationResult, shares: bool) -> None:
        if result.admin_access:
            return
        identity = DeviceId(result.driver, result.pool, result.device)
        if result.share_id is None or not shares:
            self.whole.add(identity)
            return
        self.shared.add(identity)
        if result.consumed_capacity:
            amounts = {name: quantity(text) for name, text in result.consumed_capacity.items()}
            self._shares.setdefault(identity, []).append(amounts)

    def shares(self, device: DeviceId) -> list[Amounts]:
        """What each share of a device takes."""
        return self._shares.get(device, [])

    def holds(self, device: DeviceId) -> bool:
        """Whether a claim has the device or a share of it."""
        return device in self.whole or device in self.shared


class Tentative:
    """What the solution holds that is being searched; whatever is taken can be given back."""

    def __init__(self) -> None:
        self._whole: dict[DeviceId, set[int]] = {}
        self._shares: dict[DeviceId, list[Amounts]] = {}

    def take(self, device: DeviceId, claim: int) -> None:
        """For the claim with this index, whole."""
        self._whole.setdefault(device, set()).add(claim)

    def give_back(self, device: DeviceId, claim: int) -> None:
        """Undoes a `take`."""
        self._whole[device].discard(claim)

    def take_share(self, device: DeviceId, amounts: Amounts) -> None:
        """Of a device that may be shared."""
        self._shares.setdefault(device, []).append(amounts)

    def give_back_share(self, device: DeviceId) -> None:
        """The last share that was taken."""
        self._shares[device].pop()

    def is_taken(self, device: DeviceId) -> bool:
        """By any claim, whole."""
        return bool(self._whole.get(device))

    def is_taken_by(self, device: DeviceId, claim: int) -> bool:
        """By this claim, whole."""
        return claim in self._whole.get(device, ())

    def shares(self, device: DeviceId) -> Iterator[Amounts]:
        """What each share that was taken takes."""
        return iter(self._shares.get(device, ()))

    def is_shared(self, device: DeviceId) -> bool:
        """Whether there is such a share."""
        return bool(self._shares.get(device))
