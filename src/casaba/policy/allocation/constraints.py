"""Constraints between the devices of a claim: an attribute is the same, or never the same."""

from abc import ABC, abstractmethod
from typing import ClassVar

from casaba.policy.allocation.outcome import AllocationFailed
from casaba.policy.allocation.pools import Candidate
from casaba.policy.allocation.requests import Wanted, claim_name
from casaba.wire.kubernetes import DeviceAttribute, DeviceConstraint, ResourceClaim

_Value = tuple[str, object]
"""Type and value; two values of different types are never the same."""
_UNKNOWN: _Value = ("", None)


class Constraint(ABC):
    """Keeps count of the devices that were added; what it refused once, more don't make right."""

    name: ClassVar[str]

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        self._attribute = attribute
        self._requests = requests
        self._devices = 0

    def add(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether the device may join those that were added; if so, it is added."""
        if not wanted.is_of(self._requests):
            return True
        value = _attribute(candidate, self._attribute)
        if value is None or (self._devices and not self._allows(value)):
            return False
        self._keep(wanted, value)
        self._devices += 1
        return True

    def remove(self, wanted: Wanted) -> None:
        """Undoes an `add` that returned True, the last one of this request."""
        if wanted.is_of(self._requests):
            self._drop(wanted)
            self._devices -= 1

    def __str__(self) -> str:
        """What is asked for."""
        return f"{self.name} {self._attribute}"

    @abstractmethod
    def _allows(self, value: _Value) -> bool:
        """Whether the value goes with those of the devices that were added."""

    @abstractmethod
    def _keep(self, wanted: Wanted, value: _Value) -> None:
        """Take note of a device's value."""

    @abstractmethod
    def _drop(self, wanted: Wanted) -> None:
        """Forget the value of the last device of a request."""


class MatchAttribute(Constraint):
    """All devices have the attribute, with the same value."""

    name = "matchAttribute"
    _value = _UNKNOWN

    def _allows(self, value: _Value) -> bool:
        return value is not _UNKNOWN and value == self._value

    def _keep(self, wanted: Wanted, value: _Value) -> None:
        self._value = value

    def _drop(self, wanted: Wanted) -> None:
        """The value is that of the others, too."""


class DistinctAttribute(Constraint):
    """All devices have the attribute, no two with the same value.

    Kubernetes remembers one value for each request: of a request for several devices, the last.
    """

    name = "distinctAttribute"

    def __init__(self, attribute: str, requests: tuple[str, ...], *, ignored: bool) -> None:
        super().__init__(attribute, requests)
        self._ignored = ignored
        self._values: dict[str, _Value] = {}

    def _allows(self, value: _Value) -> bool:
        if value is _UNKNOWN:
            return not self._values
        return self._ignored or value not in self._values.values()

    def _keep(self, wanted: Wanted, value: _Value) -> None:
        self._values[wanted.base] = value

    def _drop(self, wanted: Wanted) -> None:
        self._values.pop(wanted.base, None)


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
