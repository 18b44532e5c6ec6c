"""Kubernetes' CEL functions on lists, sets and texts (its lists, sets and regex libraries).

All raise ValueError for values that Kubernetes' would fail on; its text is the expression's error.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any


def is_sorted(values: list[Any]) -> bool:
    with _overloads():
        return all(not after < before for before, after in pairwise(values))


def smallest(values: list[Any]) -> Any:
    with _overloads():
        return _passed_on(min(_some(values, "min")))


def largest(values: list[Any]) -> Any:
    with _overloads():
        return _passed_on(max(_some(values, "max")))


def total(values: list[Any]) -> Any:
    """Of none it is the number 0."""
    with _overloads():
        return _passed_on(sum(values[1:], start=values[0])) if values else 0


@contextmanager
def _overloads() -> Iterator[None]:
    """Values whose types were not known before may not go together."""
    try:
        yield
    except TypeError:
        raise ValueError("no such overload") from None


def _passed_on(value: Any) -> Any:
    """Functions are given times by the library, and can't give it any."""
    if isinstance(value, timedelta | datetime):
        raise ValueError("times and durations of a list are not supported here")
    return value


def _some(values: list[Any], name: str) -> list[Any]:
    if not values:
        raise ValueError(f"{name} called on empty list")
    return values


def contains(values: list[Any], wanted: list[Any]) -> bool:
    return all(value in values for value in wanted)


def equivalent(one: list[Any], other: list[Any]) -> bool:
    return contains(one, other) and contains(other, one)


def intersects(one: list[Any], other: list[Any]) -> bool:
    return any(value in other for value in one)


def find(text: str, pattern: str) -> str:
    """The first match; empty if there is none."""
    match = _compiled(pattern).search(text)
    return match[0] if match else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    matches = [match[0] for match in _compiled(pattern).finditer(text)]
    return matches if limit < 0 else matches[:limit]


def _compiled(pattern: str) -> "re.Pattern[str]":
    """The patterns that RE2 and Python read alike; others are refused, not misread."""
    if re.search(r"\(\?[^:i]|\\[^dDwWsSbB.\\/+*?(){}\[\]|^$-]|\[\[:|[+*?]\+", pattern):
        raise ValueError(f"regular expression {pattern!r} is not supported here")
    try:
        return re.compile(pattern, re.ASCII)
    except re.error as error:
        raise ValueError(f"error parsing regexp: {error}") from None
