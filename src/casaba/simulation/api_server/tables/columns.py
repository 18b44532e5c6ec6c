"""Columns of a Table, and the pieces that the kinds' printers share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from casaba.simulation.api_server.requests import Object

Cell = str | int
Cells = list[Cell]

_MINUTE_S = 60
_HOUR_S = 60 * _MINUTE_S
_DAY_S = 24 * _HOUR_S
_YEAR_S = 365 * _DAY_S


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column; kubectl prints those of priority 1 with `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


def _no_conditions(_: Object) -> list[Object]:
    return []


@dataclass(frozen=True, kw_only=True)
class Printer:
    """How objects of one kind become rows."""

    columns: Sequence[Column]
    cells: Callable[[Object, float], Cells]
    """The cells of an object, given the time in seconds since 1970."""
    conditions: Callable[[Object], list[Object]] = _no_conditions


NAME = Column(name="Name", format="name", description="Unique among objects of its kind.")
AGE = Column(name="Age", description="Time since the object was created.")


def column(name: str, description: str, *, type_: str = "string") -> Column:
    """A column that is always printed."""
    return Column(name=name, description=description, type=type_)


def wide(name: str, description: str, *, format_: str = "") -> Column:
    """A column for `-o wide`."""
    return Column(name=name, description=description, format=format_, priority=1)


def at(object_: Any, *path: str) -> Any:
    """The value at a path, None where it is missing."""
    for key in path:
        object_ = object_.get(key) if isinstance(object_, dict) else None
    return object_


def text(object_: Any, *path: str) -> str:
    """The text at a path, "" where it is missing."""
    return at(object_, *path) or ""


def age(object_: Object, now_s: float) -> str:
    """The AGE cell."""
    return since(at(object_, "metadata", "creationTimestamp"), now_s)


def seconds(timestamp: str | None) -> float | None:
    """An API timestamp (RFC 3339) in seconds since 1970; None if there is none or it is none."""
    try:
        return datetime.fromisoformat(timestamp).timestamp() if timestamp else None
    except ValueError:
        return None


def since(timestamp: str | None, now_s: float) -> str:
    """How long ago a timestamp was, for people."""
    then_s = seconds(timestamp)
    return "<unknown>" if then_s is None else duration(now_s - then_s)


def duration(span_s: float) -> str:
    """A span with two or three significant figures, as apimachinery's HumanDuration."""
    whole_s = int(span_s)
    if whole_s < -1:
        return "<invalid>"
    if whole_s < 2 * _MINUTE_S:
        return f"{max(whole_s, 0)}s"
    if whole_s < 3 * _HOUR_S:
        return _minutes(whole_s)
    if whole_s < 48 * _HOUR_S:
        return _hours(whole_s)
    return _days(whole_s)


def _minutes(whole_s: int) -> str:
    if whole_s < 10 * _MINUTE_S:
        return _pair(whole_s, _MINUTE_S, "m", 1, "s")
    return f"{whole_s // _MINUTE_S}m"


def _hours(whole_s: int) -> str:
    if whole_s < 8 * _HOUR_S:
        return _pair(whole_s, _HOUR_S, "h", _MINUTE_S, "m")
    return f"{whole_s // _HOUR_S}h"


def _days(whole_s: int) -> str:
    if whole_s < 8 * _DAY_S:
        return _pair(whole_s, _DAY_S, "d", _HOUR_S, "h")
    if whole_s < 2 * _YEAR_S:
        return f"{whole_s // _DAY_S}d"
    if whole_s < 8 * _YEAR_S:
        return _pair(whole_s, _YEAR_S, "y", _DAY_S, "d")
    return f"{whole_s // _YEAR_S}y"


def _pair(whole_s: int, large_s: int, large: str, small_s: int, small: str) -> str:
    rest = whole_s % large_s // small_s
    return f"{whole_s // large_s}{large}" + (f"{rest}{small}" if rest else "")
