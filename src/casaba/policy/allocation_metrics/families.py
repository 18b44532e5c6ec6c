"""Gauges of one name, gathered by labels, so that no series can be there twice."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from casaba.wire.exposition import Family, Sample

T = TypeVar("T")

Labels = tuple[str, ...]
"""Values of a family's labels, in their order."""


def family(name: str, about: str, labels: str, points: Iterable[Sample] = ()) -> Family:
    """A family of single points; of two with equal labels the first counts."""
    values: dict[Labels, float] = {}
    for key, value in points:
        values.setdefault(key, value)
    return _gauges(name, about, labels, values)


def summed(name: str, about: str, labels: str, points: Iterable[Sample] = ()) -> Family:
    """A family in which points with equal labels are added up."""
    values: dict[Labels, float] = {}
    for key, value in points:
        values[key] = values.get(key, 0) + value
    return _gauges(name, about, labels, values)


def points(
    things: Iterable[T], labels: Callable[[T], Labels], value: Callable[[T], float]
) -> Iterable[Sample]:
    """One point for each thing."""
    return ((labels(thing), value(thing)) for thing in things)


def _gauges(name: str, about: str, labels: str, values: dict[Labels, float]) -> Family:
    return Family(
        name=name,
        kind="gauge",
        help=about,
        labels=tuple(labels.split()),
        samples=tuple(values.items()),
    )
