"""Quantities as the API server reads, compares and writes them (apimachinery, resource.Quantity).

Exact decimals; written back in the canonical form, so that 1024Mi becomes 1Gi and 0.5 500m.
"""

import re
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache

_FORMAT = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", re.ASCII)
_SUFFIXES = "num kMGTPE"
"""Decimal suffixes by powers of 1000; the fourth is none."""
_POWER_OF_ONE = _SUFFIXES.index(" ")
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,4})", re.ASCII)
_NANO = Decimal("1e-9")
_LARGEST = Decimal(2**63 - 1)
_EXACT = Context(prec=100)


class NotAQuantity(ValueError):
    """The text is no quantity; the message is the API server's."""


@lru_cache(maxsize=4096)
def parsed(text: str) -> Decimal:
    """The exact value, what is finer than nano rounded up. Raises NotAQuantity."""
    return _read(text)[0]


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """The same quantity as the server writes it. Raises NotAQuantity."""
    return _written(*_read(text))


def plus(text: str, other: str) -> str:
    """The sum, written in the style of the first. Raises NotAQuantity."""
    value, style = _read(text)
    return _written(value + parsed(other), style)


def _written(value: Decimal, style: str) -> str:
    whole = value == value.to_integral_value()
    if style == "binary" and whole and abs(value) >= 1024:
        return _with_binary_suffix(int(value))
    return _with_decimal_suffix(value, as_exponent=style == "exponent")


def _read(text: str) -> tuple[Decimal, str]:
    match = re.fullmatch(_FORMAT.strip("^$"), text)
    if match is None:
        raise NotAQuantity(f"quantities must match the regular expression '{_FORMAT}'")
    number, suffix = match.groups()
    multiplier, style = _multiplier(suffix)
    if _NUMBER.fullmatch(number) is None:
        raise NotAQuantity("unable to parse numeric part of quantity")
    value = _EXACT.multiply(Decimal(number), multiplier)
    if abs(value) > _LARGEST:
        return (_LARGEST if value > 0 else -_LARGEST), style
    return value.quantize(_NANO, rounding=ROUND_CEILING, context=_EXACT), style


def _multiplier(suffix: str) -> tuple[Decimal, str]:
    if suffix in _BINARY_SUFFIXES[1:]:
        return Decimal(1024) ** _BINARY_SUFFIXES.index(suffix), "binary"
    if suffix == "":
        return Decimal(1), "decimal"
    if len(suffix) == 1 and suffix in _SUFFIXES:
        return Decimal(1000) ** (_SUFFIXES.index(suffix) - _POWER_OF_ONE), "decimal"
    if exponent := _EXPONENT.fullmatch(suffix):
        return Decimal(10) ** int(exponent[1]), "exponent"
    raise NotAQuantity("unable to parse quantity's suffix")


def _with_binary_suffix(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power + 1 < len(_BINARY_SUFFIXES):
        value, power = value // 1024, power + 1
    return f"{value}{_BINARY_SUFFIXES[power]}"


def _with_decimal_suffix(value: Decimal, *, as_exponent: bool) -> str:
    if value == 0:
        return "0"
    power = -_POWER_OF_ONE
    mantissa = int(_EXACT.multiply(value, Decimal(1000) ** _POWER_OF_ONE))
    while mantissa % 1000 == 0 and power + 1 < len(_SUFFIXES) - _POWER_OF_ONE:
        mantissa, power = mantissa // 1000, power + 1
    if power == 0:
        return str(mantissa)
    suffix = f"e{3 * power}" if as_exponent else _SUFFIXES[power + _POWER_OF_ONE]
    return f"{mantissa}{suffix}"
