"""One object that an API server refuses, and how such objects are made from good ones."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
Change = Callable[[Object], None]


@dataclass(frozen=True, kw_only=True)
class BadObject:
    """One object to create; the server must refuse it."""

    name: str
    group: str = ""
    plural: str
    namespaced: bool = True
    object: Object

    def collection(self, namespace: str) -> str:
        """The path to POST to."""
        root = f"/apis/{self.group}/v1" if self.group else "/api/v1"
        place = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{root}{place}/{self.plural}"


def put(path: str, value: Any) -> Change:
    """Puts a value at a path such as spec/containers/0/name; `...` takes the field away."""

    def change(target: Any) -> None:
        *parents, last = (int(step) if step.isdecimal() else step for step in path.split("/"))
        for step in parents:
            target = target[step]
        if value is ...:
            del target[last]
        else:
            target[last] = value

    return change


def changed(base: Object, *changes: Change) -> Object:
    bad = copy.deepcopy(base)
    for change in changes:
        change(bad)
    return bad
