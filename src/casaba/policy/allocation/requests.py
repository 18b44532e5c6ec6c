"""The requests of claims, brought to one form: a list of alternatives for each."""

from dataclasses import dataclass

from casaba.model.quantity import Quantity, quantity
from casaba.policy.allocation.outcome import AllocationFailed
from casaba.wire.kubernetes import (
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)

ALL = "All"
EXACT_COUNT = "ExactCount"

RequestKey = tuple[int, int, int]
"""Index of the claim, of the request in it, and of the alternative in that."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Wanted:
    """One request, or one alternative of it."""

    key: RequestKey
    base: str
    """Name of the request."""
    alternative: str
    """Name of the alternative; empty if there are none."""
    class_name: str
    selectors: tuple[DeviceSelector, ...]
    mode: str
    count: int
    admin: bool
    tolerations: tuple[DeviceToleration, ...]
    amounts: dict[str, Quantity]
    """Capacity that is asked for."""

    @property
    def claim(self) -> int:
        """Index of the claim."""
        return self.key[0]

    @property
    def own_name(self) -> str:
        """The short name, as errors of the scheduler have it."""
        return self.alternative or self.base

    @property
    def name(self) -> str:
        """The name in results."""
        return f"{self.base}/{self.alternative}" if self.alternative else self.base

    def is_of(self, names: tuple[str, ...]) -> bool:
        """Whether a list of requests speaks of this one; an empty list speaks of all."""
        return not names or self.base in names or (bool(self.alternative) and self.name in names)


def claim_name(claim: ResourceClaim) -> str:
    """Namespace and name, as the scheduler writes them."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def alternatives(claim: ResourceClaim, claim_index: int) -> tuple[tuple[Wanted, ...], ...]:
    """For each request of a claim, what would satisfy it, best first.

    Raises AllocationFailed for a request of an unknown kind, and InvalidInput for a quantity
    that is none.
    """
    return tuple(
        _alternatives(claim, request, (claim_index, index))
        for index, request in enumerate(claim.spec.devices.requests or ())
    )


def _alternatives(
    claim: ResourceClaim, request: DeviceRequest, indexes: tuple[int, int]
) -> tuple[Wanted, ...]:
    if request.exactly is not None:
        return (_wanted(request.exactly, (*indexes, 0), request.name, ""),)
    if not request.first_available:
        raise AllocationFailed(
            f"resource claim {claim_name(claim)}, request {request.name}: unknown request type"
        )
    return tuple(
        _wanted(alternative, (*indexes, index), request.name, alternative.name)
        for index, alternative in enumerate(request.first_available)
    )


def _wanted(
    form: ExactDeviceRequest | DeviceSubRequest, key: RequestKey, base: str, alternative: str
) -> Wanted:
    asked = form.capacity.requests if form.capacity else {}
    return Wanted(
        key=key,
        base=base,
        alternative=alternative,
        class_name=form.device_class_name,
        selectors=form.selectors,
        mode=form.allocation_mode,
        count=form.count,
        admin=isinstance(form, ExactDeviceRequest) and bool(form.admin_access),
        tolerations=form.tolerations,
        amounts={name: quantity(amount) for name, amount in asked.items()},
    )
