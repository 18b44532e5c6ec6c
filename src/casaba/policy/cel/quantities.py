"""The quantity and semver types of Kubernetes' CEL, and their functions.

The library can't pass values of types of our own, so at run time a quantity is a map with its
billionths, a version a map with its text: equal values are equal maps, and nothing else works on
them. That they are types of their own is checked before (`environment`). The functions raise
ValueError where Kubernetes' would fail; its text is the expression's error.
"""

import re
from collections.abc import Callable

from casaba.errors import InvalidInput
from casaba.model.quantity import quantity
from casaba.model.version import Version, parsed_version

QUANTITY = "kubernetes.Quantity"
SEMVER = "kubernetes.Semver"

Held = dict[str, str]
"""A quantity or a version at run time."""

_NANOS = 10**9
_INT64_LIMIT = 2**63


def held_quantity(text: str) -> Held:
    """A quantity from its text."""
    return {QUANTITY: str(quantity(text).nanos)}


def held_version(text: str) -> Held:
    """A version from its text; its build part does not count, so it is left out."""
    parsed_version(text)
    return {SEMVER: text.partition("+")[0]}


def to_quantity(text: str) -> Held:
    try:
        return held_quantity(text)
    except InvalidInput:
        raise ValueError(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from None


def is_quantity(text: str) -> bool:
    return _works(held_quantity, text)


def to_version(text: str, normalize: bool = False) -> Held:
    try:
        return held_version(_normalized(text) if normalize else text)
    except InvalidInput as error:
        raise ValueError(str(error)) from None


def is_version(text: str, normalize: bool = False) -> bool:
    return _works(held_version, _normalized(text) if normalize else text)


def _works(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except InvalidInput:
        return False
    return True


def _normalized(text: str) -> str:
    """`v01.5` as `1.5.0`: without the v, leading zeros and gaps."""
    parts = text.removeprefix("v").split(".", 2)
    parts = [re.sub(r"^0+(?=[0-9])", "", part) for part in parts]
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        return ""
    return ".".join([*parts, "0", "0"][:3] if len(parts) < 3 else parts)


def compare(one: Held, other: Held) -> int:
    """Of two quantities or two versions."""
    if QUANTITY in one and QUANTITY in other:
        return (_nanos(one) > _nanos(other)) - (_nanos(one) < _nanos(other))
    return _version(one).compare(_version(other))


def sign(held: Held) -> int:
    nanos = _nanos(held)
    return (nanos > 0) - (nanos < 0)


def as_float(held: Held) -> float:
    return _nanos(held) / _NANOS


def is_integer(held: Held) -> bool:
    whole, rest = divmod(_nanos(held), _NANOS)
    return not rest and -_INT64_LIMIT <= whole < _INT64_LIMIT


def as_integer(held: Held) -> int:
    if not is_integer(held):
        raise ValueError("cannot convert value to integer")
    return _nanos(held) // _NANOS


def add(one: Held, other: Held | int) -> Held:
    return {QUANTITY: str(_nanos(one) + _addend(other))}


def subtract(one: Held, other: Held | int) -> Held:
    return {QUANTITY: str(_nanos(one) - _addend(other))}


def major(held: Held) -> int:
    return _version(held).major


def minor(held: Held) -> int:
    return _version(held).minor


def patch(held: Held) -> int:
    return _version(held).patch


def _addend(value: Held | int) -> int:
    return value * _NANOS if isinstance(value, int) else _nanos(value)


def _nanos(held: Held) -> int:
    if QUANTITY not in held:
        raise ValueError("no such overload")
    return int(held[QUANTITY])


def _version(held: Held) -> Version:
    if SEMVER not in held:
        raise ValueError("no such overload")
    return parsed_version(held[SEMVER])
