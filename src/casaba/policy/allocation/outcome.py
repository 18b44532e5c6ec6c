"""What comes out of an allocation: devices, a refusal with its reasons, or an error."""

from dataclasses import dataclass
from typing import NamedTuple

from casaba.errors import InvalidInput
from casaba.wire.kubernetes import AllocationResult


class DeviceId(NamedTuple):
    """A device's full name; prints as the scheduler prints it."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why something of a request could not be had; prints as a sentence for people."""

    claim: str
    """Namespace and name; empty if the reason is not about one claim."""
    request: str
    """`request`, or `request/alternative`; empty if the reason is about the whole claim."""
    devices: tuple[DeviceId, ...]
    """The devices that it is about, in the order in which they were looked at."""
    subject: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.sentence}" if self.subject else self.sentence


@dataclass(frozen=True, kw_only=True)
class Allocated:
    """One result for each claim, in order, to be written to its status."""

    results: tuple[AllocationResult, ...]


@dataclass(frozen=True, kw_only=True)
class Refused:
    """The claims can't be had on this node now."""

    reason: str
    """What the scheduler says of the node."""
    why: tuple[Reason, ...]


class AllocationFailed(InvalidInput):
    """Something is wrong with a claim or a class, on whatever node; in the scheduler's words."""


class ClassMissing(AllocationFailed):
    """A device class does not exist (yet); the scheduler waits for it."""
