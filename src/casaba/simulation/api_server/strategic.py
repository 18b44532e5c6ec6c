"""Strategic merge patch: a merge patch that knows by the schema which lists to merge, and how.

Directives: `$patch: delete | replace | merge` in an object or an item, `$retainKeys`,
`$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>` (sig-api-machinery's description of
strategic merge patches).
"""

from collections.abc import Sequence
from typing import Any

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.schemas import ANY, Schema

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_DIRECTIVES = ("delete", "replace", "merge")


class BadPatch(ValueError):
    """A patch that contradicts itself or the schema."""


def as_go_prints(value: Any) -> str:
    """A JSON value as Go's fmt package prints it, which is how the real server shows patches."""
    if isinstance(value, dict):
        entries = (f"{name}:{as_go_prints(value[name])}" for name in sorted(value))
        return f"map[{' '.join(entries)}]"
    if isinstance(value, list):
        return f"[{' '.join(map(as_go_prints, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def strategically_merged(schema: Schema, current: Object, patch: Object) -> Object:
    """The object after the patch. Raises BadPatch."""
    directive = _directive(patch)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _PATCH}
    if directive == "delete":
        return {}
    result = dict(current)
    if _RETAIN in patch:
        result = _retained(result, patch)
    for name, value in patch.items():
        if not name.startswith("$"):
            _merge_field(_member(schema, name), result, name, value, patch)
    _delete_values(result, patch)
    _order_lists(schema, result, patch)
    return result


def _directive(patch: Object) -> str:
    directive = patch.get(_PATCH, "merge")
    if directive not in _DIRECTIVES:
        raise BadPatch(f"unknown patch type: {directive} in map: {as_go_prints(patch)}")
    return str(directive)


def _retained(current: Object, patch: Object) -> Object:
    keys = patch[_RETAIN]
    if not isinstance(keys, list):
        raise BadPatch(f"{_RETAIN} must be a list of names")
    given = {name for name, value in patch.items() if value is not None and name[0] != "$"}
    if missing := sorted(given - set(keys)):
        raise BadPatch(f"{_RETAIN} must list every field that the patch sets; it lacks {missing}")
    return {name: value for name, value in current.items() if name in keys}


def _member(schema: Schema, name: str) -> Schema:
    return schema.properties.get(name) or schema.items or ANY


def _merge_field(schema: Schema, result: Object, name: str, value: Any, patch: Object) -> None:
    if value is None:
        result.pop(name, None)
        return
    known = result.get(name)
    if isinstance(value, dict):
        result[name] = strategically_merged(schema, known if isinstance(known, dict) else {}, value)
    elif isinstance(value, list) and "merge" in schema.patch_strategies:
        result[name] = _merged_list(schema, known if isinstance(known, list) else [], value)
    else:
        result[name] = value


def _merged_list(schema: Schema, current: Sequence[Any], patch: Sequence[Any]) -> list[Any]:
    if not schema.merge_key:
        return [*current, *(value for value in patch if value not in current)]
    items = [item for item in patch if item != {_PATCH: "replace"}]
    if len(items) < len(patch):
        return [_plain(item) for item in items]
    result = list(current)
    for item in items:
        _merge_item(schema, result, item)
    return result


def _plain(item: Any) -> Any:
    if isinstance(item, dict):
        return {name: value for name, value in item.items() if name != _PATCH}
    return item


def _merge_item(schema: Schema, result: list[Any], item: Any) -> None:
    key = schema.merge_key
    if not isinstance(item, dict):
        raise BadPatch(f"an item of a list that is merged by {key!r} must be an object: {item!r}")
    if key not in item:
        told = as_go_prints(item)
        raise BadPatch(f"map: {told} does not contain declared merge key: {key}")
    found = [index for index, known in enumerate(result) if known.get(key) == item[key]]
    directive = _directive(item)
    if directive == "delete":
        for index in reversed(found):
            del result[index]
    elif found:
        result[found[0]] = strategically_merged(schema.items or ANY, result[found[0]], item)
    else:
        result.append(strategically_merged(schema.items or ANY, {}, item))


def _delete_values(result: Object, patch: Object) -> None:
    for directive, values in patch.items():
        name = directive.removeprefix(_DELETE)
        if name != directive and isinstance(result.get(name), list):
            result[name] = [value for value in result[name] if value not in values]


def _order_lists(schema: Schema, result: Object, patch: Object) -> None:
    for directive, order in patch.items():
        name = directive.removeprefix(_ORDER)
        if name != directive and isinstance(result.get(name), list):
            result[name] = _ordered(_member(schema, name), result[name], order)


def _ordered(schema: Schema, items: Sequence[Any], order: Any) -> list[Any]:
    """Named items in the given order; others keep their place behind what stood before them."""
    key = schema.merge_key

    def named(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    if not isinstance(order, list):
        raise BadPatch(f"{_ORDER}… must be a list")
    wanted = [named(item) for item in order]
    ranked = sorted(
        (item for item in items if named(item) in wanted),
        key=lambda item: wanted.index(named(item)),
    )
    result: list[Any] = []
    for item in items:
        if named(item) not in wanted:
            result.append(item)
        elif ranked:
            result.append(ranked.pop(0))
    return result
