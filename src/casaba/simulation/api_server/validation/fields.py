"""Sentences about wrong fields, as apimachinery's package field makes them.

Each maker takes the path of the field, such as `spec.containers[0].name`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from casaba.simulation.api_server.statuses import FieldError

Errors = Iterator[FieldError]
IMMUTABLE = "field is immutable"


def required(path: str, detail: str = "") -> FieldError:
    """The field must not be empty."""
    return _error("FieldValueRequired", path, "Required value", detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """The value breaks a rule."""
    return _error("FieldValueInvalid", path, f"Invalid value: {shown(value)}", detail)


def not_supported(path: str, value: Any, supported: Sequence[str]) -> FieldError:
    """The value is none of a list."""
    detail = f"supported values: {', '.join(map(shown, supported))}" if supported else ""
    return _error("FieldValueNotSupported", path, f"Unsupported value: {shown(value)}", detail)


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    """The value names something that is not there."""
    return _error("FieldValueNotFound", path, f"Not found: {shown(value)}", detail)


def duplicate(path: str, value: Any, detail: str = "") -> FieldError:
    """The value was there before and must be unique."""
    return _error("FieldValueDuplicate", path, f"Duplicate value: {shown(value)}", detail)


def forbidden(path: str, detail: str) -> FieldError:
    """The field may not be set, or not now."""
    return _error("FieldValueForbidden", path, "Forbidden", detail)


def too_long(path: str, limit_bytes: int) -> FieldError:
    """The text is longer than the limit."""
    return _error(
        "FieldValueTooLong", path, "Too long", f"may not be more than {limit_bytes} bytes"
    )


def too_many(path: str, count: int, limit: int) -> FieldError:
    """The list is longer than the limit."""
    items = "item" if limit == 1 else "items"
    return _error(
        "FieldValueTooMany", path, f"Too many: {count}", f"must have at most {limit} {items}"
    )


def _error(reason: str, path: str, told: str, detail: str) -> FieldError:
    message = f"{told}: {detail}" if detail else told
    return FieldError(field=path, message=message, reason=reason)


def shown(value: Any) -> str:
    """A value as messages show it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def each(path: str, messages: Iterable[str], value: Any) -> Errors:
    """One error for each message about a value."""
    for message in messages:
        yield invalid(path, value, message)


def immutable(path: str, new: Any, old: Any) -> Errors:
    """The value must be what it was."""
    if new != old:
        yield invalid(path, new, IMMUTABLE)


def chosen(path: str, value: str, supported: Sequence[str]) -> Errors:
    """The value must be there and one of a list."""
    if not value:
        yield required(path)
    elif value not in supported:
        yield not_supported(path, value, supported)


def listed(
    path: str,
    items: Sequence[Any],
    limit: int | None,
    check: Callable[[Any, str], Iterable[FieldError]],
    key: Callable[[Any], Any] | None = None,
) -> Errors:
    """Every item is checked and, with a key, unique; a list that is too long is not looked at."""
    if limit is not None and len(items) > limit:
        yield too_many(path, len(items), limit)
        return
    for index, item in enumerate(items):
        yield from check(item, f"{path}[{index}]")
    if key is not None:
        yield from _unique(path, [key(item) for item in items])


def _unique(path: str, keys: Sequence[Any]) -> Errors:
    for index, key in enumerate(keys):
        if key in keys[:index]:
            yield duplicate(f"{path}[{index}]", key)


def mapped(
    path: str,
    entries: Mapping[str, Any],
    limit: int | None,
    check_key: Callable[[str, str], Iterable[FieldError]],
    check: Callable[[Any, str], Iterable[FieldError]],
) -> Errors:
    """Every key and value is checked; a map that is too large is not looked at."""
    if limit is not None and len(entries) > limit:
        yield too_many(path, len(entries), limit)
        return
    for key, value in entries.items():
        yield from check_key(key, path)
        yield from check(value, f"{path}[{key}]")
