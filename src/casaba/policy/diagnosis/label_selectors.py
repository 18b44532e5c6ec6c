"""What a LabelSelector of an object selects, whatever is odd in it; pure."""

from collections.abc import Mapping

from casaba.policy.diagnosis.objects import Object, items, part, text


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether labels meet every condition; an empty selector selects all (meta/v1)."""
    equal = all(labels.get(key) == value for key, value in part(selector, "matchLabels").items())
    return equal and all(_is_met(one, labels) for one in items(selector, "matchExpressions"))


def _is_met(condition: Object, labels: Mapping[str, str]) -> bool:
    value, wanted = labels.get(text(condition, "key")), condition.get("values")
    values = wanted if isinstance(wanted, list) else []
    match condition.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
