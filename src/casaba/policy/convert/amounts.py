"""Amounts of classic resources: quantities of which the API server accepts many forms.

It hands a webhook their canonical text, in which 24000 is `24k` and 1e1 is `10`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from casaba.errors import InvalidInput
from casaba.model.quantity import MIB, quantity, whole
from casaba.policy.convert.pods import Container, described, mapping
from casaba.policy.convert.refusals import MALFORMED, PodRefused, cut, shown

_KINDS = ("limits", "requests")
_BYTES = re.compile(r"[MGTPE]i?$")
_MAX_BITS = 256
_CACHE_ENTRIES = 1024


@dataclass(frozen=True, kw_only=True)
class Amount:
    """A whole number that is not negative, and its text."""

    value: int
    text: str

    @property
    def looks_like_bytes(self) -> bool:
        """Whether it is written as people write bytes: 10Gi. Thousands (24k) are no such sign."""
        return _BYTES.search(self.text) is not None

    @property
    def mib_of_bytes(self) -> int:
        """The MiB in so many bytes, rounded up."""
        return -(-self.value // MIB)


def asks_for(resources: Any, names: Iterable[str]) -> bool:
    """Whether limits or requests of some resources have one of the names."""
    asked = mapping(resources)
    return any(not mapping(asked.get(kind)).keys().isdisjoint(names) for kind in _KINDS)


def amounts(container: Container, names: Iterable[str]) -> Mapping[str, Amount]:
    """Those of the named resources that a container asks for.

    Limits stand before requests, as in the classic webhook; where both are there they must be
    equal, as the API server demands of extended resources. Raises PodRefused.
    """
    kinds = [mapping(container.resources.get(kind)) for kind in _KINDS]
    return {
        name: _amount(container, name, given)
        for name in names
        if (given := [kind[name] for kind in kinds if name in kind])
    }


def _amount(container: Container, name: str, given: Sequence[Any]) -> Amount:
    try:
        first, *others = [_whole_number(value) for value in given]
        for other in others:
            if other.value != first.value:
                raise PodRefused(
                    f"the limit is {first.text}, the request {other.text}; write the limit only"
                )
    except PodRefused as refusal:
        place = f"{described(container)}: {name}"
        raise PodRefused(f"{place}: {refusal}", code=refusal.code) from None
    return first


def _whole_number(value: Any) -> Amount:
    try:
        return _written_amount(_text(value))
    except InvalidInput:
        raise _no_quantity(value) from None


@lru_cache(_CACHE_ENTRIES)
def _written_amount(text: str) -> Amount:
    """Raises InvalidInput for what is no quantity."""
    amount = quantity(text)
    if amount.nanos < 0:
        raise PodRefused(f"{cut(text)} is negative; write a positive whole number")
    if amount.nanos != whole(amount.value()).nanos:
        raise PodRefused(f"{cut(text)} is a fraction; write a whole number")
    return Amount(value=amount.value(), text=cut(text))


def _text(value: Any) -> str:
    """As apimachinery's Quantity.UnmarshalJSON: numbers are texts, null is zero."""
    if isinstance(value, str):
        return value.strip()
    if value is None:
        return "0"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (isinstance(value, int) and value.bit_length() > _MAX_BITS):
        raise _no_quantity(value)
    return repr(value)


def _no_quantity(value: Any) -> PodRefused:
    return PodRefused(f"{shown(value)} is not a quantity; write a whole number", code=MALFORMED)
