"""Rules for a device's capacity and for how it may be requested (KEP 5075, as in 1.36)."""

from collections.abc import Sequence

from casaba.model.quantity import parse, quantity
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation.fields import (
    Errors,
    forbidden,
    invalid,
    listed,
    required,
)

VALID_VALUES = 10


def capacity_errors(capacity: Object, path: str, *, shared: bool) -> Errors:
    """Only devices that are shared have a policy."""
    policy = capacity.get("requestPolicy")
    if policy is None:
        return
    place = f"{path}.requestPolicy"
    if shared:
        yield from _policy_errors(capacity.get("value", "0"), policy, place)
    else:
        yield forbidden(place, "allowMultipleAllocations must be true")


def _policy_errors(capacity: str, policy: Object, path: str) -> Errors:
    values, range_ = policy.get("validValues", ()), policy.get("validRange")
    default = policy.get("default")
    if values and range_ is not None:
        yield forbidden(
            path,
            'exactly one policy can be specified, cannot specify "validValues" and "validRange" '
            "at the same time",
        )
    elif values:
        if default is None:
            yield required(f"{path}.default", "required when validValues is defined")
        else:
            yield from _values_errors(default, capacity, values, f"{path}.validValues")
    elif range_ is not None:
        if default is None:
            yield required(f"{path}.default", "required when validRange is defined")
        else:
            yield from _range_errors(default, capacity, range_, f"{path}.validRange")


def _values_errors(default: str, capacity: str, values: Sequence[str], path: str) -> Errors:
    for index in range(1, len(values)):
        if _amount(values[index - 1]) > _amount(values[index]):
            detail = "values must be sorted in ascending order"
            yield invalid(f"{path}[{index}]", values[index], detail)

    def too_large(value: str, place: str) -> Errors:
        if _amount(value) > _amount(capacity):
            yield invalid(place, value, f"option is larger than capacity value: {capacity}")

    yield from listed(path, values, VALID_VALUES, too_large, lambda value: str(parse(value)))
    if len(values) > VALID_VALUES or _amount(default) not in map(_amount, values):
        yield invalid(path, default, "default value is not valid according to the requestPolicy")


def _range_errors(default: str, capacity: str, range_: Object, path: str) -> Errors:
    if "min" not in range_:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    least, most, step = range_["min"], range_.get("max"), range_.get("step")
    if _amount(least) > _amount(capacity):
        yield invalid(f"{path}.min", least, f"min is larger than capacity value: {capacity}")
    if _amount(default) < _amount(least):
        yield invalid(f"{path}.min", default, f"default is less than min: {least}")
    if most is not None:
        yield from _most_errors(default, capacity, least, most, f"{path}.max")
    if step is not None:
        yield from _step_errors(default, capacity, range_, f"{path}.step")


def _most_errors(default: str, capacity: str, least: str, most: str, path: str) -> Errors:
    if _amount(least) > _amount(most):
        yield invalid(path, least, f"min is larger than max: {most}")
    if _amount(most) > _amount(capacity):
        yield invalid(path, most, f"max is larger than capacity value: {capacity}")
    if _amount(default) > _amount(most):
        yield invalid(path, default, f"default is more than max: {most}")


def _step_errors(default: str, capacity: str, range_: Object, path: str) -> Errors:
    least, most, step = range_["min"], range_.get("max"), range_["step"]
    first = quantity(least) + quantity(step)
    if first.nanos > _amount(capacity):
        yield invalid(path, step, f"one step {first} is larger than capacity value: {capacity}")
    for value in (default, most):
        if value is not None and not _is_reached(value, least, step):
            detail = f"value is not a multiple of a given step ({step}) from ({least})"
            yield invalid(path, value, detail)


def _is_reached(value: str, least: str, step: str) -> bool:
    # The real server divides by zero here; a step of nothing reaches only the least.
    distance, width = parse(value) - parse(least), parse(step)
    return distance % width == 0 if width else distance == 0


def _amount(text: str) -> int:
    return quantity(text).nanos
