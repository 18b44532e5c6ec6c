"""Kubernetes quantities as exact integers (apimachinery's resource.Quantity).

Only what capacities need: whole numbers, decimal and binary suffixes, exponents and fractions.
"""

import re
from decimal import Decimal

from casaba.errors import InvalidInput

MIB = 1 << 20
GIB = 1 << 30

_BINARY = {"Ki": 1 << 10, "Mi": MIB, "Gi": GIB, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
}
_FORM = re.compile(
    r"(?P<number>[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))"
    r"((?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,2}))?",
    re.ASCII,
)


def parse(text: str) -> int:
    """The value of a quantity, fractions rounded up as Quantity.Value() does.

    Raises InvalidInput for what Kubernetes would refuse too.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"{text!r} is not a quantity: write a number with an optional suffix, "
            "such as 10Gi, 512Mi, 50 or 2k"
        )
    value = Decimal(match["number"]) * _multiplier(match["suffix"], match["exponent"])
    return int(value.to_integral_value(rounding="ROUND_CEILING"))


def _multiplier(suffix: str | None, exponent: str | None) -> Decimal:
    if exponent is not None:
        return Decimal(10) ** int(exponent)
    if suffix in _BINARY:
        return Decimal(_BINARY[suffix])
    return _DECIMAL[suffix or ""]


def format_binary(value: int) -> str:
    """The shortest exact text with a binary suffix: 10240 MiB is `10Gi`, 23028 MiB `23028Mi`."""
    for suffix, size in reversed(_BINARY.items()):
        if value and value % size == 0:
            return f"{value // size}{suffix}"
    return str(value)
