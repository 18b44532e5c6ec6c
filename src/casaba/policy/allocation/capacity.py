"""How much of a device's capacity a request takes (KEP 5075, consumable capacity)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from casaba.model.quantity import Notation, Quantity, quantity, whole
from casaba.wire.kubernetes import (
    CapacityRange,
    CapacityRequestPolicy,
    Device,
    DeviceCapacity,
)

Amounts = Mapping[str, Quantity]


def consumption(asked: Amounts, device: Device) -> dict[str, Quantity] | str:
    """What a request takes of each capacity, or why the device can't give it, ever.

    Capacities that are not asked for are taken too: their default, or everything.
    """
    if unknown := sorted(set(asked) - set(device.capacity)):
        return f"it has no capacity {unknown[0]!r}"
    taken = {}
    for name, capacity in device.capacity.items():
        taken[name] = consumed(asked.get(name), capacity)
        if _violates(taken[name], capacity.request_policy):
            return f"{taken[name]} of {name} is not an amount that it gives{_allowed(capacity)}"
    return taken


@dataclass(frozen=True)
class Shortage:
    """A capacity that lacks room; a search finds millions, and prints few of them."""

    name: str
    asked: Quantity
    total: Quantity
    used_nanos: int
    """Billionths that are held already."""

    def __str__(self) -> str:
        left = Quantity(max(0, self.total.nanos - self.used_nanos), self.total.notation)
        return f"{self.asked} of {self.name} asked, {left} left of {self.total}"


def shortage(taken: Amounts, device: Device, held: Sequence[Amounts]) -> Shortage | None:
    """The first capacity that lacks room beside what is held already; None if none does."""
    for name, amount in taken.items():
        total = quantity(device.capacity[name].value)
        used = sum(part[name].nanos for part in held if name in part) if held else 0
        if used + amount.nanos > total.nanos:
            return Shortage(name, amount, total, used)
    return None


def consumed(asked: Quantity | None, capacity: DeviceCapacity) -> Quantity:
    """The amount taken when so much is asked, rounded up as the capacity's policy says."""
    policy = capacity.request_policy
    if asked is None:
        return quantity(policy.default if policy and policy.default else capacity.value)
    if policy is None:
        return asked
    if policy.valid_range is not None and policy.valid_range.min:
        return _rounded_to_range(asked, policy.valid_range)
    fitting = (
        value for text in policy.valid_values if (value := quantity(text)).nanos >= asked.nanos
    )
    return next(fitting, asked)


def _rounded_to_range(asked: Quantity, range_: CapacityRange) -> Quantity:
    lowest = quantity(range_.min)
    if asked.nanos < lowest.nanos:
        return lowest
    if not range_.step:
        return asked
    step = quantity(range_.step).value()
    steps = -(-(asked.value() - lowest.value()) // step)
    return whole(lowest.value() + steps * step, Notation.BINARY)


def _violates(amount: Quantity, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default and quantity(policy.default) == amount):
        return False
    if policy.valid_range is not None:
        return _outside(amount, policy.valid_range)
    values = {quantity(text).nanos for text in policy.valid_values}
    return bool(values) and amount.nanos not in values


def _outside(amount: Quantity, range_: CapacityRange) -> bool:
    if range_.max and amount.nanos > quantity(range_.max).nanos:
        return True
    if not range_.step:
        return False
    start = quantity(range_.min).value()
    return (amount.value() - start) % quantity(range_.step).value() != 0


def _allowed(capacity: DeviceCapacity) -> str:
    policy = capacity.request_policy
    if policy is None:
        return ""
    if policy.valid_range is None:
        return f" (one of {', '.join(policy.valid_values)})"
    range_ = policy.valid_range
    upper = range_.max or capacity.value
    steps = f" in steps of {range_.step}" if range_.step else ""
    return f" ({range_.min} to {upper}{steps})"
