"""Bodies against schemas: unknown and repeated fields, wrong types, and values in canonical form.

What a Go struct would do to the JSON is done here by the schema: nulls and empty collections of
optional fields vanish, quantities and times are rewritten, unknown fields are told and dropped.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from casaba.simulation.api_server import quantity_texts, times
from casaba.simulation.api_server.bodies import RepeatedFields
from casaba.simulation.api_server.requests import copied
from casaba.simulation.api_server.schemas import Schema

_INTEGER_BITS = {"int32": 32, "int64": 64}
_GO_TYPES = {
    "boolean": "bool",
    "string": "string",
    "number": "float64",
    "map": "map[string]string",
    "time": "string",
    "micro-time": "string",
}
_BASE64 = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)
_STRINGS = frozenset({"string", "time", "micro-time"})


class WrongType(ValueError):
    """A field holds what its type can't take; the message is what Go's decoder says."""


class Checked:
    """One body, read by a schema.

    Raises WrongType at the first field that can't be read.
    """

    def __init__(self, schema: Schema, value: Any) -> None:
        self.problems: list[str] = []
        self.value = self._read(schema, value, _Place(schema))

    def _read(self, schema: Schema, value: Any, place: "_Place") -> Any:
        match schema.type:
            case "object":
                return self._object(schema, value, place)
            case "list":
                return self._list(schema, value, place)
            case "map":
                return self._map(schema, value, place)
            case "any":
                self.problems += _repeated_below(value, place.path)
                return value
        return _scalar(schema, value, place)

    def _object(self, schema: Schema, value: Any, place: "_Place") -> Any:
        if not isinstance(value, dict):
            raise _wrong(schema, value, place)
        read = {}
        for name, member in value.items():
            at = place.field(schema, name)
            known = schema.properties.get(name)
            if known is None:
                self.problems.append(f'unknown field "{at.path}"')
            elif member is not None:
                member = self._read(known, member, at)
                if not _says_nothing(name, known, member):
                    read[name] = member
        self.problems += _repeated(value, place.path)
        return with_defaults(schema, read)

    def _list(self, schema: Schema, value: Any, place: "_Place") -> Any:
        if not isinstance(value, list):
            raise _wrong(schema, value, place)
        items = schema.items or schema
        return [
            self._read(items, _zero(items) if item is None else item, place.index(index))
            for index, item in enumerate(value)
        ]

    def _map(self, schema: Schema, value: Any, place: "_Place") -> Any:
        if not isinstance(value, dict):
            raise _wrong(schema, value, place)
        items = schema.items or schema
        self.problems += _repeated(value, place.path)
        return {
            key: self._read(items, _zero(items) if item is None else item, place.key(key))
            for key, item in value.items()
        }


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands: for people with indices and keys, for Go only by struct fields."""

    owner: Schema
    path: str = ""
    fields: str = ""

    def field(self, owner: Schema, name: str) -> "_Place":
        prefix, fields = (f"{self.path}.", f"{self.fields}.") if self.path else ("", "")
        return _Place(owner, prefix + name, fields + name)

    def index(self, index: int) -> "_Place":
        return _Place(self.owner, f"{self.path}[{index}]", self.fields)

    def key(self, key: str) -> "_Place":
        return _Place(self.owner, f"{self.path}.{key}", self.fields)


def with_defaults(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    """The object with the fields that are always there; the given dictionary is extended."""
    for name, default in schema.defaults.items():
        if name not in value:
            value[name] = copied(default)
    return value


def _says_nothing(name: str, schema: Schema, value: Any) -> bool:
    """Empty collections vanish; but an empty list of managers tells to forget them."""
    return not value and schema.type in {"list", "map"} and name != "managedFields"


def _zero(schema: Schema) -> Any:
    """What Go makes of a null inside a collection."""
    zeros: Mapping[str, Any] = {"object": {}, "list": [], "map": {}, "boolean": False}
    if schema.type in _STRINGS:
        return ""
    return zeros.get(schema.type, 0)


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, RepeatedFields):
        for name in value.repeated:
            yield f'duplicate field "{path}.{name}"' if path else f'duplicate field "{name}"'


def _repeated_below(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _repeated(value, path)
        for name, member in value.items():
            yield from _repeated_below(member, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _repeated_below(member, f"{path}[{index}]")


def repeated_fields(value: Any) -> tuple[str, ...]:
    """A sentence for each field that was given twice, wherever."""
    return tuple(_repeated_below(value, ""))


def _scalar(schema: Schema, value: Any, place: _Place) -> Any:
    match schema.type:
        case "string" if isinstance(value, str):
            return _base64(value) if schema.format == "byte" else value
        case "boolean" if isinstance(value, bool):
            return value
        case "integer" if _is_integer(value) and _fits(schema, value):
            return value
        case "number" if _is_integer(value) or isinstance(value, float):
            return value
        case "int-or-string" if isinstance(value, str) or _is_integer(value):
            return value
        case "quantity" if isinstance(value, str | float) or _is_integer(value):
            return _canonical(quantity_texts.canonical, str(value).strip())
        case "time" if isinstance(value, str):
            return _canonical(times.canonical, value)
        case "micro-time" if isinstance(value, str):
            return _canonical(times.canonical_micro, value)
    if schema.type == "quantity":
        return _canonical(quantity_texts.canonical, "true" if value is True else "[]")
    raise _wrong(schema, value, place)


def _base64(text: str) -> str:
    stripped = text.replace("\n", "").replace("\r", "")
    match = _BASE64.match(stripped)
    good = len(match[0]) if match else 0
    if good != len(stripped):
        raise WrongType(f"illegal base64 data at input byte {good}")
    return stripped


def _canonical(write: Callable[[str], str], text: str) -> str:
    try:
        return write(text)
    except (quantity_texts.NotAQuantity, times.NotATime) as error:
        raise WrongType(str(error)) from error


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _fits(schema: Schema, value: int) -> bool:
    bits = _INTEGER_BITS.get(schema.format, 64)
    return bool(-(1 << (bits - 1)) <= value < 1 << (bits - 1))


def _wrong(schema: Schema, value: Any, place: _Place) -> WrongType:
    json_type = _json_type(value, schema)
    if not place.fields or schema.type in {"time", "micro-time"}:
        return WrongType(f"json: cannot unmarshal {json_type} into Go value of type {_go(schema)}")
    return WrongType(
        f"json: cannot unmarshal {json_type} into Go struct field "
        f"{place.owner.name}.{place.fields} of type {_go(schema)}"
    )


def _json_type(value: Any, schema: Schema) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {value}" if schema.type == "integer" else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _go(schema: Schema) -> str:
    """The type as Go names it, as far as a schema can tell."""
    if schema.type == "integer":
        return schema.format or "int"
    if schema.type == "map" and schema.items and schema.items.type == "quantity":
        return "v1.ResourceList"
    if schema.type == "list":
        return f"[]{_go(schema.items)}" if schema.items else "[]string"
    return _GO_TYPES.get(schema.type, f"v1.{schema.name}")
