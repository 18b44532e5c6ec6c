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
    effect, value = toleration.get("effect", ""), toleration.get("value", "")
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
    if operator in ("Equal", ""):
        if told := ";".join(names.label_value(value)):
            yield invalid(f"{path}.operator", value, told)
    elif operator == "Exists":
        if value:
            yield invalid(
                f"{path}.operator", value, "value must be empty when `operator` is 'Exists'"
            )
    else:
        yield not_supported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", effect, _EFFECTS)
