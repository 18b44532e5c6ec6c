"""Sets of fields and their JSON form, FieldsV1 (structured-merge-diff, fieldpath).

A path is a tuple of steps. A step is ("f", name) for a field or a map's key, ("k", JSON of the
keys) for an item of a list with keys, ("v", JSON of the value) for an item of a set.
"""

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from casaba.simulation.api_server.requests import Object

Step = tuple[str, str]
Path = tuple[Step, ...]
FieldSet = frozenset[Path]
EMPTY: FieldSet = frozenset()
_SELF = "."


def compact(value: Any) -> str:
    """JSON without blanks and with sorted keys, so that equal values have equal texts."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def to_fields_v1(fields: Iterable[Path]) -> Object:
    """The nested form; a field that is set and has set children carries a dot."""
    tree = _tree(fields)
    return _written(tree)


def _tree(fields: Iterable[Path]) -> Object:
    tree: Object = {}
    for path in fields:
        node = tree
        for step in path:
            node = node.setdefault(f"{step[0]}:{step[1]}", {})
        node[_SELF] = {}
    return tree


def _written(tree: Object) -> Object:
    if tree.keys() == {_SELF}:
        return {}
    return {key: {} if key == _SELF else _written(tree[key]) for key in sorted(tree)}


def from_fields_v1(document: Any) -> FieldSet:
    """The set in a FieldsV1 document. Raises ValueError for what is none."""
    return frozenset(_read(document, ()))


def _read(document: Any, prefix: Path) -> Iterator[Path]:
    if not isinstance(document, dict):
        raise ValueError(f"{document!r} is no set of fields")
    if prefix and not document:
        yield prefix
    for key, below in document.items():
        if key == _SELF:
            yield prefix
        else:
            yield from _read(below, (*prefix, _step(key)))


@lru_cache(maxsize=8192)
def _step(key: str) -> Step:
    kind, colon, text = key.partition(":")
    if not colon or kind not in {"f", "k", "v", "i"}:
        raise ValueError(f"{key!r} is no step of a path")
    if kind in {"k", "v"}:
        return kind, compact(json.loads(text))
    return kind, text


def below(fields: FieldSet, step: Step) -> FieldSet:
    """What the set holds under a step, without the step."""
    return frozenset(path[1:] for path in fields if len(path) > 1 and path[0] == step)


def is_under(path: Path, roots: Iterable[Path]) -> bool:
    """Whether the path is one of the roots or below one."""
    return any(path[: len(root)] == root for root in roots)


def shown(path: Path) -> str:
    """A path as people read it: .spec.containers[name="a"].image"""
    return "".join(map(_shown_step, path))


def _shown_step(step: Step) -> str:
    kind, text = step
    if kind == "f":
        return f".{text}"
    if kind == "k":
        keys = json.loads(text)
        return f"[{','.join(f'{name}={compact(value)}' for name, value in keys.items())}]"
    return f"[={text}]" if kind == "v" else f"[{text}]"


def in_order(fields: Iterable[Path]) -> list[Path]:
    """The set as the real server walks it: members of a level before what lies below them."""
    return list(_walk(_tree(fields), ()))


def _walk(tree: Object, prefix: Path) -> Iterator[Path]:
    children = sorted(key for key in tree if key != _SELF)
    for key in children:
        if _SELF in tree[key]:
            yield (*prefix, _step(key))
    for key in children:
        yield from _walk(tree[key], (*prefix, _step(key)))
