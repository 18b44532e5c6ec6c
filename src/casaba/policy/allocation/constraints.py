"""Constraints between the devices of a claim: an attribute is the same, or never the same."""

from typing import Protocol

from casaba.policy.allocation.outcome import AllocationFailed
from casaba.policy.allocation.pools import Candidate
from casaba.policy.allocation.requests import Wanted, claim_name
from casaba.wire.kubernetes import DeviceAttribute, DeviceConstraint, ResourceClaim

_Value = tuple[str, object]
"""Type and value; two values of different types are never the same."""
_UNKNOWN: _Value = ("", None)


class Constraint(Protocol):
    """Keeps count of the devices that were added; what it refused once, more don't make right."""

    def add(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether the device may join those that were added; if so, it is added."""
        ...

    def remove(self, wanted: Wanted) -> None:
        """Undoes an `add` that returned True, the last one of this request."""
        ...

    def __str__(self) -> str:
        """What is asked for."""
        ...


class MatchAttribute:
    """All devices have the attribute, with the same value."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        self._attribute = attribute
        self._requests = requests
        self._value = _UNKNOWN
        self._devices = 0

    def add(self, wanted: Wanted, candidate: Candidate) -> bool:
        if not wanted.is_of(self._requests):
            return True
        value = _attribute(candidate, self._attribute)
        if value is None:
            return False
        if self._devices == 0:
            self._value = value
        elif value is _UNKNOWN or value != self._value:
            return False
        self._devices += 1
        return True

    def remove(self, wanted: Wanted) -> None:
        if wanted.is_of(self._requests):
            self._devices -= 1

    def __str__(self) -> str:
        return f"matchAttribute {self._attribute}"


class DistinctAttribute:
    """All devices have the attribute, no two with the same value.

    Kubernetes remembers one value for each request: of a request for several devices, the last.
    """

    def __init__(self, attribute: str, requests: tuple[str, ...], *, ignored: bool) -> None:
        self._attribute = attribute
        self._requests = requests
        self._ignored = ignored
        self._values: dict[str, _Value] = {}
        self._devices = 0

    def add(self, wanted: Wanted, candidate: Candidate) -> bool:
        if not wanted.is_of(self._requests):
            return True
        value = _attribute(candidate, self._attribute)
        if value is None:
            return False
        if self._devices and not self._is_new(value):
            return False
        self._values[wanted.base] = value
        self._devices += 1
        return True

    def _is_new(self, value: _Value) -> bool:
        if value is _UNKNOWN:
            return not self._values
        return self._ignored or value not in self._values.values()

    def remove(self, wanted: Wanted) -> None:
        if wanted.is_of(self._requests):
            self._values.pop(wanted.base, None)
            self._devices -= 1

    def __str__(self) -> str:
        return f"distinctAttribute {self._attribute}"


def constraints_of(claim: ResourceClaim, *, distinct_is_ignored: bool) -> tuple[Constraint, ...]:
    """Fresh constraints for one search; raises AllocationFailed for one of an unknown kind."""
    return tuple(
        _constraint(claim, index, constraint, distinct_is_ignored)
        for index, constraint in enumerate(claim.spec.devices.constraints)
    )


def _constraint(
    claim: ResourceClaim, index: int, constraint: DeviceConstraint, distinct_is_ignored: bool
) -> Constraint:
    if constraint.match_attribute is not None:
        return MatchAttribute(constraint.match_attribute, constraint.requests)
    if constraint.distinct_attribute is not None:
        return DistinctAttribute(
            constraint.distinct_attribute, constraint.requests, ignored=distinct_is_ignored
        )
    raise AllocationFailed(
        f"claim {claim_name(claim)}, constraint #{index}: "
        "empty constraint (unsupported constraint type?)"
    )


def _attribute(candidate: Candidate, name: str) -> _Value | None:
    """By its full name; one without a domain is in the driver's."""
    attributes = candidate.device.attributes
    found = attributes.get(name)
    domain, separator, identifier = name.partition("/")
    if found is None and separator and domain == candidate.id.driver:
        found = attributes.get(identifier)
    return None if found is None else _value(found)


def _value(attribute: DeviceAttribute) -> _Value:
    for kind in ("string", "int_", "bool_", "version"):
        value = getattr(attribute, kind)
        if value is not None:
            return kind, value
    return _UNKNOWN
