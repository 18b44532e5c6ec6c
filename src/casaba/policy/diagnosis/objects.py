"""Reads objects of the API as their JSON is, whatever is missing or odd in them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

Object = Mapping[str, Any]


def part(object_: Object, *keys: str) -> Object:
    """The mapping at a path; empty when there is none."""
    found: Any = object_
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def items(object_: Object, *keys: str) -> Sequence[Object]:
    """The objects of the list at a path."""
    found = part(object_, *keys[:-1]).get(keys[-1])
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else ()


def text(object_: Object, *keys: str) -> str:
    """The text at a path; empty when there is none."""
    found = part(object_, *keys[:-1]).get(keys[-1])
    return found if isinstance(found, str) else ""


def name(object_: Object) -> str:
    """The object's own name."""
    return text(object_, "metadata", "name")


def full_name(object_: Object) -> str:
    """`namespace/name`."""
    return f"{text(object_, 'metadata', 'namespace')}/{name(object_)}"


def label(object_: Object, key: str) -> str:
    """The value of a label; empty when there is none."""
    return text(object_, "metadata", "labels", key)


def is_true(conditions: Iterable[Object], kind: str) -> bool:
    """Whether a condition of a status holds."""
    return any(one.get("type") == kind and one.get("status") == "True" for one in conditions)


def time_s(written: str) -> float | None:
    """An RFC 3339 time as seconds since 1970; None for what is none."""
    try:
        moment = datetime.fromisoformat(written)
        return moment.timestamp() if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
