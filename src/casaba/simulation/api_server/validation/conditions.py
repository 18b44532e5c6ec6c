"""Rules for lists of conditions (meta/v1, Condition)."""

from collections.abc import Sequence

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.fields import (
    Errors,
    duplicate,
    each,
    invalid,
    not_supported,
    required,
    too_long,
)

REASON_BYTES = 1 << 10
MESSAGE_BYTES = 32 << 10
_STATUSES = ("False", "True", "Unknown")


def conditions_errors(path: str, conditions: Sequence[Object]) -> Errors:
    """Each type once, each condition complete."""
    types: set[str] = set()
    for index, condition in enumerate(conditions):
        kind = condition.get("type", "")
        if kind in types:
            yield duplicate(f"{path}[{index}].type", kind)
        types.add(kind)
        yield from _condition_errors(f"{path}[{index}]", condition)


def _condition_errors(path: str, condition: Object) -> Errors:
    kind, status = condition.get("type", ""), condition.get("status", "")
    yield from each(f"{path}.type", names.qualified(kind), kind)
    if status not in _STATUSES:
        yield not_supported(f"{path}.status", status, _STATUSES)
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        yield invalid(
            f"{path}.observedGeneration", generation, "must be greater than or equal to zero"
        )
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime")
    yield from _reason_errors(f"{path}.reason", condition.get("reason", ""))
    if len(condition.get("message", "").encode()) > MESSAGE_BYTES:
        yield too_long(f"{path}.message", MESSAGE_BYTES)


def _reason_errors(path: str, reason: str) -> Errors:
    if not reason:
        yield required(path)
        return
    yield from each(path, names.condition_reason(reason), reason)
    if len(reason) > REASON_BYTES:
        yield too_long(path, REASON_BYTES)
