"""Opaque parameters of a claim or class, read strictly, and what they come to on a card."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from casaba.errors import InvalidInput
from casaba.model.slice_parameters import (
    API_VERSION,
    HIGH_PRIORITY,
    KIND,
    LOW_PRIORITY,
    CorePolicy,
    SliceParameters,
)

__all__ = [
    "API_VERSION",
    "HIGH_PRIORITY",
    "KIND",
    "LOW_PRIORITY",
    "MAX_WEIGHT",
    "ComputeTerms",
    "CorePolicy",
    "SliceParameters",
    "compute_terms",
    "parse_parameters",
]

MIN_WEIGHT = 1
MAX_WEIGHT = 1000

FIELDS = ("weight", "corePolicy", "priority")

NVIDIA_GROUP = "resource.nvidia.com"
"""Group of the kinds that HAMi's and NVIDIA's drivers read."""

_HIGH_PRIORITY_FACTOR = 10
_SHOWN_CHARACTERS = 80
_SHOWN_BITS = 256
_CORE_WEIGHT = 10
"""What the guard is told for a weight of 1 of a tenant that was given cores."""


@dataclass(frozen=True, kw_only=True)
class ComputeTerms:
    """The two numbers of a card that the guard paces by, see native/include/policy.def."""

    cores_percent: int
    """Cap on the card's time; 0: none."""
    weight: int


def parse_parameters(raw: object) -> SliceParameters:
    """The parameters of one entry of a configuration.

    Raises InvalidInput naming the field and what is allowed.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInput(
            f"parameters: {_shown(raw)} is not an object; write {API_VERSION} {KIND}"
        )
    _check_type(raw)
    for name in raw:
        if name not in ("apiVersion", "kind", *FIELDS):
            raise InvalidInput(f"{_cut(str(name))}: no such field{_nearest(name)}")
    return SliceParameters(
        weight=_number(raw, "weight", MIN_WEIGHT, MAX_WEIGHT),
        core_policy=_core_policy(raw),
        priority=_number(raw, "priority", HIGH_PRIORITY, LOW_PRIORITY, " (0: high, 1: low)"),
    )


def compute_terms(parameters: SliceParameters, cores_percent: int) -> ComputeTerms:
    """What the guard is told of a tenant that was given so many cores of a card.

    No tenant takes by its weight what its neighbours were given: with a cap it never has more
    than its own cores; without one it weighs no more than these. A tenant without cores has no
    cap and no guarantee: it weighs a tenth of one core, and one core at most.
    """
    weight = parameters.weight or cores_percent or MIN_WEIGHT
    if parameters.priority == HIGH_PRIORITY:
        weight *= _HIGH_PRIORITY_FACTOR
    weight = min(weight, MAX_WEIGHT)
    if cores_percent <= 0:
        return ComputeTerms(cores_percent=0, weight=min(weight, _CORE_WEIGHT))
    if parameters.core_policy is not CorePolicy.DISABLE:
        return ComputeTerms(cores_percent=cores_percent, weight=weight * _CORE_WEIGHT)
    return ComputeTerms(cores_percent=0, weight=min(weight, cores_percent) * _CORE_WEIGHT)


def _check_type(raw: Mapping[object, object]) -> None:
    version, kind = raw.get("apiVersion"), raw.get("kind")
    if (version, kind) == (API_VERSION, KIND):
        return
    if isinstance(version, str) and version.split("/")[0] == NVIDIA_GROUP:
        raise InvalidInput(
            f"kind: {_shown(kind)} of {version} is for HAMi's and NVIDIA's drivers: leave the "
            "entry out, since memory and cores of the request are the slice here, and write "
            f"weight, priority or corePolicy as {API_VERSION} {KIND} if you need them"
        )
    name, found = ("apiVersion", version) if version != API_VERSION else ("kind", kind)
    expected = API_VERSION if name == "apiVersion" else KIND
    raise InvalidInput(f"{name}: {_shown(found)}, but only {expected} is known")


def _number(
    raw: Mapping[object, object], name: str, lowest: int, highest: int, meaning: str = ""
) -> int | None:
    if name not in raw:
        return None
    value = raw[name]
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise InvalidInput(
            f"{name}: {_shown(value)} is not a whole number from {lowest} to {highest}{meaning}"
        )
    return value


def _core_policy(raw: Mapping[object, object]) -> CorePolicy | None:
    if "corePolicy" not in raw:
        return None
    value = raw["corePolicy"]
    for policy in CorePolicy:
        if policy.value == value:
            return policy
    known = ", ".join(policy.value for policy in CorePolicy)
    raise InvalidInput(f"corePolicy: {_shown(value)} is none of {known}")


def _nearest(name: object) -> str:
    found = get_close_matches(str(name), FIELDS, n=1)
    return f", did you mean {found[0]}?" if found else f"; there are {', '.join(FIELDS)}"


def _shown(value: object) -> str:
    """A value as people know it from JSON, cut where it is long."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (Mapping, list)):
        return "an object" if isinstance(value, Mapping) else "a list"
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return "a number of so many digits"
    return _cut(repr(value) if isinstance(value, str) else str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
