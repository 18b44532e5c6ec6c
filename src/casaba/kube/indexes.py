"""Finds cached objects by something that is in them. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from casaba.kube.resources import ObjectKey

T = TypeVar("T")

IndexFunction = Callable[[T], Iterable[str]]
"""The values under which an object is to be found; must be pure and not raise."""


class Indexes(Generic[T]):
    """Keys of objects by index name and value, in the order in which they got there."""

    def __init__(self, functions: Mapping[str, IndexFunction[T]]) -> None:
        self._functions = dict(functions)
        self._keys: dict[str, dict[str, dict[ObjectKey, None]]] = {name: {} for name in functions}

    def keys(self, name: str, value: str) -> tuple[ObjectKey, ...]:
        """Keys of the objects with a value; raises KeyError for an index that was not asked for."""
        return tuple(self._keys[name].get(value, ()))

    def change(self, key: ObjectKey, before: T | None, after: T | None) -> None:
        """An object appeared (`before` is None), changed, or went (`after` is None)."""
        if not self._functions:
            return
        for name, function in self._functions.items():
            old = set(function(before)) if before is not None else set()
            new = dict.fromkeys(function(after)) if after is not None else {}
            for value in new:
                if value not in old:
                    self._keys[name].setdefault(value, {})[key] = None
            for value in old - new.keys():
                self._leave(self._keys[name], value, key)

    @staticmethod
    def _leave(index: dict[str, dict[ObjectKey, None]], value: str, key: ObjectKey) -> None:
        del index[value][key]
        if not index[value]:
            del index[value]
