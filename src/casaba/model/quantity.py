"""Kubernetes quantities, exactly as apimachinery's resource.Quantity has them.

A quantity is a number of billionths, since no finer part is kept, and the notation in which it
was written; the notation decides the canonical text.
"""

import re
from dataclasses import dataclass, field
from decimal import ROUND_UP, Decimal, localcontext
from enum import Enum
from functools import lru_cache

from casaba.errors import InvalidInput

MIB = 1 << 20
GIB = 1 << 30

_NANOS = 10**9
_LARGEST_BINARY = 2**63 - 1
_PRECISION_DIGITS = 400
"""More than the longest number that the form admits can need."""
_KEPT_DIGITS = 18
_KEPT_BINARY_DIGITS = 15
_CACHE_ENTRIES = 4096
_BINARY = {"Ki": 1 << 10, "Mi": MIB, "Gi": GIB, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_SUFFIX_OF = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_FORM = re.compile(
    r"(?P<number>[+-]?([0-9]{1,100}(\.[0-9]{0,100})?|\.[0-9]{1,100}))"
    r"((?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,2}))?",
    re.ASCII,
)


class Notation(Enum):
    """How a quantity is written: `12Mi`, `12M` or `12e6`."""

    BINARY = "BinarySI"
    DECIMAL = "DecimalSI"
    EXPONENT = "DecimalExponent"


@dataclass(frozen=True)
class Quantity:
    """An exact amount and its notation; equality is of both, `nanos` compares amounts."""

    nanos: int
    notation: Notation = Notation.DECIMAL
    written: str = field(default="", compare=False)
    """The text that it was read from, if apimachinery keeps that instead of the canonical one."""

    def value(self) -> int:
        """The whole number, fractions rounded up, as Quantity.Value()."""
        return -(-self.nanos // _NANOS)

    def __add__(self, other: "Quantity") -> "Quantity":
        """The sum, in the notation of the first that is not zero."""
        notation = self.notation if self.nanos else other.notation
        return Quantity(self.nanos + other.nanos, notation)

    def __sub__(self, other: "Quantity") -> "Quantity":
        notation = self.notation if self.nanos else other.notation
        return Quantity(self.nanos - other.nanos, notation)

    def __str__(self) -> str:
        """The canonical text, as Quantity.String(): 1.5Gi is `1536Mi`, 0.5 is `500m`."""
        if self.written:
            return self.written
        if self.nanos == 0:
            return "0"
        whole, fraction = divmod(abs(self.nanos), _NANOS)
        if self.notation is Notation.BINARY and whole >= 1024 and not fraction:
            return ("-" if self.nanos < 0 else "") + format_binary(whole)
        return self._decimal_text()

    def _decimal_text(self) -> str:
        digits, exponent = self.nanos, -9
        while digits % 1000 == 0:
            digits, exponent = digits // 1000, exponent + 3
        if self.notation is Notation.EXPONENT:
            return f"{digits}e{exponent}" if exponent else str(digits)
        # apimachinery knows no suffix beyond E, and writes none: 1000E becomes `1`.
        return f"{digits}{_SUFFIX_OF.get(exponent, '')}"


def whole(value: int, notation: Notation = Notation.DECIMAL) -> Quantity:
    """A whole number as a quantity."""
    return Quantity(value * _NANOS, notation)


@lru_cache(_CACHE_ENTRIES)
def quantity(text: str) -> Quantity:
    """The quantity that a text means; what is finer than a billionth is rounded away from zero.

    Raises InvalidInput for what Kubernetes would refuse too.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"{text!r} is not a quantity: write a number with an optional suffix, "
            "such as 10Gi, 512Mi, 50 or 2k"
        )
    notation = _notation(match["suffix"], match["exponent"])
    with localcontext(prec=_PRECISION_DIGITS):
        amount = Decimal(match["number"]) * _multiplier(match["suffix"], match["exponent"])
        nanos = int((amount * _NANOS).to_integral_value(rounding=ROUND_UP))
    if notation is Notation.BINARY:
        nanos = min(max(nanos, -_LARGEST_BINARY * _NANOS), _LARGEST_BINARY * _NANOS)
        if 0 < abs(nanos) < _NANOS:
            notation = Notation.DECIMAL
    return Quantity(nanos, notation, text if _is_kept(match) else "")


def parse(text: str) -> int:
    """The value of a quantity, fractions rounded up as Quantity.Value() does.

    Raises InvalidInput for what Kubernetes would refuse too.
    """
    return quantity(text).value()


def _notation(suffix: str | None, exponent: str | None) -> Notation:
    if exponent is not None:
        return Notation.EXPONENT
    return Notation.BINARY if suffix in _BINARY else Notation.DECIMAL


def _is_kept(match: "re.Match[str]") -> bool:
    """Whether apimachinery takes a text for canonical and keeps it, also where it is not quite."""
    number, _, decimals = match["number"].lstrip("+-").partition(".")
    number = number.lstrip("0") or "0"
    if match["suffix"] in _BINARY:
        digits_of_suffix = list(_BINARY).index(match["suffix"]) * 3 + 3
        fits = len(number) + digits_of_suffix < _KEPT_BINARY_DIGITS
        return fits and not decimals and int(number) % 8 != 0
    exponent = int(match["exponent"] or _DECIMAL[match["suffix"] or ""])
    shifted, scale = number + decimals, exponent - len(decimals)
    fits = len(shifted) <= _KEPT_DIGITS and scale >= -9
    return fits and scale % 3 == 0 and shifted[0] != "0" and not shifted.endswith("000")


def _multiplier(suffix: str | None, exponent: str | None) -> Decimal:
    if exponent is not None:
        return Decimal(10) ** int(exponent)
    if suffix in _BINARY:
        return Decimal(_BINARY[suffix])
    return Decimal(10) ** _DECIMAL[suffix or ""]


def format_binary(value: int) -> str:
    """The shortest exact text with a binary suffix: 10240 MiB is `10Gi`, 23028 MiB `23028Mi`."""
    for suffix, size in reversed(_BINARY.items()):
        if value and value % size == 0:
            return f"{value // size}{suffix}"
    return str(value)
