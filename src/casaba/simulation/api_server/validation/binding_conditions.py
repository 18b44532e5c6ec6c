"""Rules for a device's binding conditions, in slices and in allocation results."""

from collections.abc import Sequence

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.fields import Errors, duplicate, each, invalid, listed

CONDITIONS = 4


def binding_condition_errors(owner: Object, path: str) -> Errors:
    """Both lists or none, short, without repetition and without overlap."""
    conditions = owner.get("bindingConditions", ())
    failures = owner.get("bindingFailureConditions", ())
    place, failure_place = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"
    yield from listed(place, conditions, CONDITIONS, _type_errors)
    yield from listed(failure_place, failures, CONDITIONS, _type_errors)
    yield from _repeated(place, conditions)
    for index, condition in enumerate(failures):
        yield from _repeated(failure_place, failures[: index + 1], only_last=True)
        if condition in conditions:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            yield invalid(f"{failure_place}[{index}]", condition, detail)
    if failures and not conditions:
        detail = "bindingConditions are required to use bindingFailureConditions"
        yield invalid(place, None, detail)
    if conditions and not failures:
        detail = "bindingFailureConditions are required to use bindingConditions"
        yield invalid(failure_place, None, detail)


def _type_errors(condition: str, path: str) -> Errors:
    yield from each(path, names.qualified(condition), condition)


def _repeated(path: str, conditions: Sequence[str], *, only_last: bool = False) -> Errors:
    for index, condition in enumerate(conditions):
        if only_last and index + 1 < len(conditions):
            continue
        if condition in conditions[:index]:
            yield duplicate(f"{path}[{index}]", condition)
