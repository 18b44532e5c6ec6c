"""Rules for a pod's tolerations (core/v1)."""

from collections.abc import Iterable

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.fields import Errors, each, invalid, not_supported

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def tolerations_errors(tolerations: Iterable[Object], path: str) -> Errors:
    """Operators that fit their keys and values."""
    for index, toleration in enumerate(tolerations):
        yield from _toleration_errors(toleration, f"{path}[{index}]")


def _toleration_errors(toleration: Object, path: str) -> Errors:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect = toleration.get("effect", "")
    if key:
        yield from each(f"{path}.key", names.qualified(key), key)
    elif operator != "Exists":
        detail = (
            "operator must be Exists when `key` is empty, "
            'which means "match all values and all keys"'
        )
        yield invalid(f"{path}.operator", operator, detail)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{path}.effect", effect, detail)
    yield from _operator_errors(f"{path}.operator", operator, toleration.get("value", ""))
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", effect, _EFFECTS)


def _operator_errors(path: str, operator: str, value: str) -> Errors:
    if operator in ("Equal", ""):
        if told := ";".join(names.label_value(value)):
            yield invalid(path, value, told)
    elif operator == "Exists":
        if value:
            yield invalid(path, value, "value must be empty when `operator` is 'Exists'")
    else:
        yield not_supported(path, operator, ("Equal", "Exists"))
