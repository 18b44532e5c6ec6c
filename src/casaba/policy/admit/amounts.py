"""Capacity that a request asks for: names, ranges and steps (KEP-5075).

The API server takes any key and any amount; the scheduler passes over every device that lacks the
key, rounds an amount up to the next step, and takes the default where nothing is asked.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from casaba.errors import InvalidInput
from casaba.model.quantity import MIB, Quantity, format_binary, quantity
from casaba.policy.admit.asked import Asked
from casaba.policy.admit.verdict import Verdict, shown
from casaba.policy.slices import CORES, MEMORY
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.kubernetes import Device

FULL_CORES = 100

_CLASSIC_MEMORY = ("gpumem", "nvidia.com/gpumem")
_CLASSIC_CORES = ("gpucores", "nvidia.com/gpucores")
_ALIASES = {"mem": MEMORY, "vram": MEMORY, "core": CORES, "sm": CORES, "compute": CORES}
_NANOS = 10**9
_SHOWN_CHARACTERS = 40


def judge_amounts(asked: Asked) -> Verdict:
    """The capacity of one request or alternative."""
    refusals: list[str] = []
    warnings: list[str] = []
    for key, value in asked.amounts.items():
        at = f"{asked.at}.capacity.requests[{key}]"
        try:
            warnings += [f"{at}: {text}" for text in _warnings(key, value)]
        except InvalidInput as error:
            refusals.append(f"{at}: {error}")
    return Verdict(refusals=tuple(refusals), warnings=(*warnings, *_left_out(asked)))


def too_large(asked: Asked, devices: Iterable[Device]) -> str:
    """That no card which is visible now has so much memory; empty where it can't be said.

    Of an alternative nothing is said: a smaller one may come after it.
    """
    try:
        memory = quantity(str(asked.amounts[MEMORY]))
    except (KeyError, InvalidInput):
        return ""
    largest = _largest_memory(devices)
    if asked.alternative or largest is None or memory.nanos <= largest.nanos:
        return ""
    return (
        f"{asked.at}.capacity.requests[{MEMORY}]: {memory} is more than any card has that is "
        f"visible now (the largest has {largest}): the claim will stay Pending until a larger one "
        "joins"
    )


def _warnings(key: str, value: object) -> Iterator[str]:
    """Raises InvalidInput for what can never be had."""
    if key not in (CORES, MEMORY):
        raise InvalidInput(_unknown_key(key, value))
    amount = _amount(key, value)
    return _of_memory(amount) if key == MEMORY else _of_cores(amount)


def _amount(key: str, value: object) -> Quantity:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        raise InvalidInput(f"{shown(value)} is not a quantity; write {_example(key)}")
    try:
        return quantity(str(value))
    except InvalidInput:
        raise InvalidInput(f"{shown(value)} is not a quantity; write {_example(key)}") from None


def _example(key: str) -> str:
    return "10Gi or 512Mi" if key == MEMORY else "a whole number such as 50"


def _of_memory(amount: Quantity) -> Iterator[str]:
    if amount.nanos < MIB * _NANOS:
        raise InvalidInput(
            f"{amount} bytes are less than the smallest slice, 1Mi; with a unit it is {amount}Mi"
            if amount.nanos > 0
            else f"{amount} is not an amount of memory; ask for 1Mi or more"
        )
    rounded = -(-amount.value() // MIB) * MIB
    if rounded * _NANOS != amount.nanos:
        yield (f"{amount} is no whole number of Mi: the scheduler takes {format_binary(rounded)}")


def _of_cores(amount: Quantity) -> Iterator[str]:
    if not 0 <= amount.nanos <= FULL_CORES * _NANOS:
        raise InvalidInput(
            f"{amount} is not a percentage of one card's compute; ask for 0 to {FULL_CORES}, "
            "and for several cards with count"
        )
    if amount.nanos % _NANOS:
        yield f"{amount} is no whole number: the scheduler takes {amount.value()}"


def _left_out(asked: Asked) -> Iterable[str]:
    """One of the two alone is seldom meant: the other one is taken whole."""
    keys = set(asked.amounts) & {CORES, MEMORY}
    at = f"{asked.at}.capacity.requests"
    if keys == {MEMORY}:
        yield (
            f"{at}: {CORES} is not asked for, so all {FULL_CORES} are taken and the card has none "
            f"left for others; {CORES}: 0 means no guarantee and no cap"
        )
    if keys == {CORES}:
        yield f"{at}: {MEMORY} is not asked for, so all memory of the card is taken"


def _unknown_key(key: str, value: object) -> str:
    text, value = f"no card has the capacity {shown(key)}", str(value)[:_SHOWN_CHARACTERS]
    if key in _CLASSIC_MEMORY:
        unit = "Mi" if value.isdecimal() else ""
        return f'{text}: that is the name of a pod\'s resource; write {MEMORY}: "{value}{unit}"'
    if key in _CLASSIC_CORES:
        return f"{text}: that is the name of a pod's resource; write {CORES}: {value}"
    domain, _, rest = key.rpartition("/")
    if domain == DRIVER_NAME and rest in (CORES, MEMORY):
        return f"{text}: names are compared letter by letter; write {rest}"
    nearest = _ALIASES.get(rest.lower()) or _nearest(rest.lower())
    if nearest:
        return f"{text}; did you mean {nearest}?"
    return f"{text}; there are {CORES} and {MEMORY}"


def _nearest(name: str) -> str:
    found = get_close_matches(name, (CORES, MEMORY), n=1)
    return found[0] if found else ""


def _largest_memory(devices: Iterable[Device]) -> Quantity | None:
    found = [
        quantity(device.capacity[MEMORY].value) for device in devices if MEMORY in device.capacity
    ]
    return max(found, key=lambda amount: amount.nanos, default=None)


def as_text(amounts: Mapping[str, object]) -> dict[str, str]:
    """Amounts as the API server stores them: quantities as text."""
    return {key: str(value) for key, value in amounts.items()}
