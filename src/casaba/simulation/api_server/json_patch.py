"""The operations of a JSON patch (RFC 6902), with the liberties that the real server takes."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from casaba.simulation.api_server.requests import Object, copied

_MISSING = "missing value"


class CannotPatch(ValueError):
    """An operation that can't be done; the message is for people."""


def operated(document: Any, step: Object) -> Any:
    """The document after one operation; the given one may be changed. Raises CannotPatch."""
    operation = str(step.get("op"))
    if operation not in _OPERATIONS:
        raise CannotPatch(f"Unexpected kind: {operation}")
    if not isinstance(step.get("path"), str):
        raise CannotPatch("missing path")
    return _OPERATIONS[operation](document, step)


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise CannotPatch(f"{text!r} is no JSON pointer: it must be empty or start with a slash")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(target: list[Any], key: str, *, limit: int) -> int:
    if not key.isdecimal() or (len(key) > 1 and key[0] == "0"):
        raise CannotPatch(f"{key!r} is no index of an array")
    if int(key) >= limit:
        raise CannotPatch(f"Unable to access invalid index: {key}: {_MISSING}")
    return int(key)


def _found(document: Any, path: list[str], text: str) -> Any:
    for key in path:
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif isinstance(document, list):
            document = document[_index(document, key, limit=len(document))]
        else:
            raise CannotPatch(f"doc is missing path: {text}: {_MISSING}")
    return document


def _parent(document: Any, text: str) -> tuple[Any, str]:
    path = _pointer(text)
    if not path:
        raise CannotPatch("the whole document can't be replaced or removed")
    parent = _found(document, path[:-1], text)
    if not isinstance(parent, dict | list):
        raise CannotPatch(f"doc is missing path: {text}: {_MISSING}")
    return parent, path[-1]


def _value(step: Object) -> Any:
    if "value" not in step:
        raise CannotPatch(f"operation {step['op']} of {step['path']} has no value")
    return copied(step["value"])


def _add(document: Any, step: Object) -> Any:
    return _added(document, step["path"], _value(step))


def _added(document: Any, text: str, value: Any) -> Any:
    if text == "":
        return value
    parent, key = _parent(document, text)
    if isinstance(parent, dict):
        parent[key] = value
    elif key == "-":
        parent.append(value)
    else:
        parent.insert(_index(parent, key, limit=len(parent) + 1), value)
    return document


def _removed(document: Any, text: str) -> Any:
    parent, key = _parent(document, text)
    if isinstance(parent, list):
        return parent.pop(_index(parent, key, limit=len(parent)))
    if key not in parent:
        raise CannotPatch(
            f"remove operation does not apply: doc is missing path: {text}: {_MISSING}"
        )
    return parent.pop(key)


def _remove(document: Any, step: Object) -> Any:
    _removed(document, step["path"])
    return document


def _replace(document: Any, step: Object) -> Any:
    if step["path"] == "":
        return _value(step)
    parent, key = _parent(document, step["path"])
    if isinstance(parent, list):
        parent[_index(parent, key, limit=len(parent))] = _value(step)
    else:
        # RFC 6902 wants the field to be there; the real server does not.
        parent[key] = _value(step)
    return document


def _move(document: Any, step: Object) -> Any:
    source = step.get("from")
    _pointer(source)
    if step["path"].startswith(f"{source}/"):
        raise CannotPatch(f"{source} can't be moved below itself")
    return _added(document, step["path"], _removed(document, str(source)))


def _copy(document: Any, step: Object) -> Any:
    source = step.get("from")
    value = copied(_found(document, _pointer(source), str(source)))
    return _added(document, step["path"], value)


def _test(document: Any, step: Object) -> Any:
    try:
        found = _found(document, _pointer(step["path"]), step["path"])
    except CannotPatch:
        found = None
    if not _is_same(found, step.get("value")):
        raise CannotPatch(f"testing value {step['path']} failed: test failed")
    return document


def _is_same(one: Any, other: Any) -> bool:
    """Equal as JSON: a boolean is no number."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


_OPERATIONS: Mapping[str, Callable[[Any, Object], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
