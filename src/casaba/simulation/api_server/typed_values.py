"""Values with their schema: which fields they hold, how two differ, merging and removing.

What structured-merge-diff does for server-side apply. Lists are atomic unless the schema says set
or map, objects and maps are merged field by field unless it says atomic.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casaba.simulation.api_server.field_sets import FieldSet, Path, Step, below, compact
from casaba.simulation.api_server.schemas import ANY, Schema


class NotTyped(ValueError):
    """A value that the schema has no place for; the message names the field."""


@dataclass(frozen=True)
class _Absent:
    """Stands for no value, since None is JSON's null."""


ABSENT = _Absent()


def is_granular(schema: Schema, value: Any) -> bool:
    """Whether the value is merged by its parts."""
    if isinstance(value, dict):
        return schema.type in {"object", "map"} and not schema.is_atomic_map
    if isinstance(value, list):
        return schema.list_type in {"set", "map"}
    return False


def step_of(schema: Schema, item: Any) -> Step:
    """How an item of a granular list is named. Raises NotTyped if it lacks its keys."""
    if schema.list_type == "set":
        return "v", compact(item)
    if not isinstance(item, dict):
        raise NotTyped("associative list with keys may not have non-map elements")
    properties = (schema.items or ANY).properties
    keys = {}
    for key in schema.list_keys:
        value = item.get(key, properties[key].default if key in properties else None)
        if value is not None:
            keys[key] = value
    if not keys:
        told = ", ".join(f'"{key}"' for key in schema.list_keys)
        raise NotTyped(f"associative list with keys has an element that omits key field {told}")
    return "k", compact(keys)


def parts(schema: Schema, value: Any) -> Iterator[tuple[Step, Schema, Any]]:
    """The parts of a granular value; of list items with the same name only the first."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield ("f", name), member_schema(schema, name), member
        return
    seen = set()
    for item in value:
        step = step_of(schema, item)
        if step not in seen:
            seen.add(step)
            yield step, schema.items or ANY, item


def member_schema(schema: Schema, name: str) -> Schema:
    """The schema of a field or of a map's value. Raises NotTyped for an unknown field."""
    if schema.type == "object":
        if name not in schema.properties:
            raise NotTyped(f".{name}: field not declared in schema")
        return schema.properties[name]
    return schema.items or ANY


def check(schema: Schema, value: Any, path: str = "") -> None:
    """Raises NotTyped for fields that the schema lacks and items that come twice."""
    if not is_granular(schema, value):
        return
    seen = set()
    for index, (name, item) in enumerate(_entries(value)):
        place = f"{path}.{name}" if isinstance(value, dict) else f"{path}[{index}]"
        if isinstance(value, dict):
            try:
                below_schema = member_schema(schema, name)
            except NotTyped as error:
                raise NotTyped(f"{path}{error}") from error
        else:
            below_schema = schema.items or ANY
            step = _named(schema, item, f"{path}: element {index}")
            if step in seen:
                raise NotTyped(f"{path}: duplicate entries for key [{_key_text(step)}]")
            seen.add(step)
        check(below_schema, item, place)


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    else:
        yield from (("", item) for item in value)


def _named(schema: Schema, item: Any, place: str) -> Step:
    try:
        return step_of(schema, item)
    except NotTyped as error:
        raise NotTyped(f"{place}: {error}") from error


def _key_text(step: Step) -> str:
    if step[0] == "v":
        return f"={step[1]}"
    return step[1].strip("{}").replace('":', "=").replace('"', "", 1)


def field_set(schema: Schema, value: Any) -> FieldSet:
    """The fields that a value holds, as an applier owns them."""
    return frozenset(_fields(schema, value, ()))


def _fields(schema: Schema, value: Any, path: Path) -> Iterator[Path]:
    if not is_granular(schema, value):
        yield path
        return
    for step, below_schema, item in parts(schema, value):
        yield from _fields(below_schema, item, (*path, step))
        if step[0] != "f" or _is_member(schema, step[1], item):
            yield (*path, step)


def _is_member(schema: Schema, name: str, value: Any) -> bool:
    """Whether the field itself counts, beside what is in it: keys of maps, and what is empty."""
    return schema.type != "object" or value is None or value == {}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What changed between two values."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


def difference(schema: Schema, old: Any, new: Any) -> Difference:
    """The fields that came, changed and went."""
    found: dict[str, set[Path]] = {"added": set(), "modified": set(), "removed": set()}
    _compare(schema, old, new, (), found)
    return Difference(**{name: frozenset(paths) for name, paths in found.items()})


def _compare(schema: Schema, old: Any, new: Any, path: Path, found: dict[str, set[Path]]) -> None:
    if old is ABSENT:
        found["added"].add(path)
    elif new is ABSENT:
        found["removed"].add(path)
    elif old == new:
        return
    old_parts, new_parts = _part_map(schema, old), _part_map(schema, new)
    if not old_parts and not new_parts:
        if old is not ABSENT and new is not ABSENT:
            found["modified"].add(path)
        return
    if _is_leaf(schema, old) or _is_leaf(schema, new):
        found["modified"].add(path)
    for step in {**old_parts, **new_parts}:
        below_schema, old_item = old_parts.get(step, (None, ABSENT))
        new_schema, new_item = new_parts.get(step, (None, ABSENT))
        _compare(new_schema or below_schema or ANY, old_item, new_item, (*path, step), found)


def _is_leaf(schema: Schema, value: Any) -> bool:
    return value is not ABSENT and value is not None and not is_granular(schema, value)


def _part_map(schema: Schema, value: Any) -> Mapping[Step, tuple[Schema, Any]]:
    if value is ABSENT or not is_granular(schema, value):
        return {}
    return {step: (below_schema, item) for step, below_schema, item in parts(schema, value)}


def merged(schema: Schema, live: Any, applied: Any) -> Any:
    """The live value with everything that is applied, in the order of the applied lists."""
    if not is_granular(schema, applied) or not is_granular(schema, live):
        return applied
    if isinstance(applied, dict):
        result = dict(live)
        for name, value in applied.items():
            known = result.get(name, ABSENT)
            below_schema = member_schema(schema, name)
            result[name] = value if known is ABSENT else merged(below_schema, known, value)
        return result
    return _merged_list(schema, live, applied)


def _merged_list(schema: Schema, live: Sequence[Any], applied: Sequence[Any]) -> list[Any]:
    """Applied items in their order; live ones that are not applied keep what they stood behind."""
    live_items = {step_of(schema, item): item for item in reversed(live)}
    applied_items = {step_of(schema, item): item for item in applied}
    waiting = list(applied_items)
    shared = [step for step in applied_items if step in live_items]
    result: list[Any] = []

    def take_until(last: Step) -> None:
        while waiting:
            step = waiting.pop(0)
            known, item = live_items.get(step, ABSENT), applied_items[step]
            result.append(item if known is ABSENT else merged(schema.items or ANY, known, item))
            if step == last:
                return

    for step in reversed(live_items):
        if step not in applied_items:
            result.append(live_items[step])
        elif shared[:1] == [step]:
            take_until(shared.pop(0))
    for step in tuple(waiting):
        take_until(step)
    return result


def without(schema: Schema, value: Any, fields: FieldSet) -> Any:
    """The value without the given fields and items; ABSENT if nothing is left of a collection.

    What lies below an atomic value stays or goes with it.
    """
    if not fields or not is_granular(schema, value) or not value:
        return value
    if isinstance(value, dict):
        kept = {}
        for step, below_schema, item in parts(schema, value):
            if (step,) not in fields:
                rest = without(below_schema, item, below(fields, step))
                kept[step[1]] = None if rest is ABSENT else rest
        return kept or ABSENT
    return _list_without(schema, value, fields) or ABSENT


def _list_without(schema: Schema, value: Sequence[Any], fields: FieldSet) -> list[Any]:
    kept = []
    for item in value:
        step = step_of(schema, item)
        if (step,) not in fields:
            rest = without(schema.items or ANY, item, below(fields, step))
            kept.append(None if rest is ABSENT else rest)
    return kept
