"""Request bodies, JSON or YAML, into plain values; knows which fields were given twice.

JSON tells of repeated fields by their path, so the values themselves carry them; YAML by the line.
"""

import contextlib
import json
import re
from collections.abc import Hashable
from typing import Any

import yaml

YAML_CONTENT_TYPES = frozenset(
    {"application/yaml", "application/x-yaml", "application/apply-patch+yaml"}
)


class Unreadable(ValueError):
    """The bytes are neither JSON nor YAML."""


class RepeatedFields(dict[str, Any]):
    """An object in which a field stood more than once; the last value counts."""

    repeated: tuple[str, ...] = ()


def media_type(content_type: str) -> str:
    """Content-Type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def parsed(body: bytes, content_type: str = "application/json") -> tuple[Any, tuple[str, ...]]:
    """The value that a body holds, and a sentence for each line that repeats a YAML key.

    Raises Unreadable, saying where the text stops making sense.
    """
    if media_type(content_type) not in YAML_CONTENT_TYPES:
        return _parsed_json(body), ()
    if body.lstrip().startswith(b"{"):
        # JSON is YAML, and much faster to read; what is not quite JSON goes the long way.
        with contextlib.suppress(Unreadable):
            return _parsed_json(body), ()
    return _parsed_yaml(body)


def _parsed_json(body: bytes) -> Any:
    try:
        value = json.loads(body, object_pairs_hook=_object, parse_constant=_no_constant)
        return _whole_characters(value) if b"\\u" in body else value
    except json.JSONDecodeError as error:
        raise Unreadable(_where(error)) from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"invalid JSON: {error}") from error


def _whole_characters(value: Any) -> Any:
    """Half a surrogate pair becomes U+FFFD, as in Go's decoder; no text could hold it."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_whole_characters(item) for item in value]
    if isinstance(value, dict):
        for key in [key for key in value if _whole_characters(key) != key]:
            value[_whole_characters(key)] = value.pop(key)
        for key, item in value.items():
            value[key] = _whole_characters(item)
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _where(error: json.JSONDecodeError) -> str:
    rest = error.doc[error.pos :].lstrip()
    if not rest:
        return "unexpected end of JSON input"
    if error.msg == "Extra data":
        return f"invalid character {rest[0]!r} after top-level value"
    return f"invalid character {rest[0]!r} looking for beginning of value"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    marked = RepeatedFields(pairs)
    names = [name for name, _ in pairs]
    marked.repeated = tuple(name for name in plain if names.count(name) > 1)
    return marked


class _Loader(yaml.CSafeLoader):
    """YAML as Go's decoder reads it on its way to JSON: no dates, no base 60, string keys."""

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self.repeated: list[str] = []


_REPLACED_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("timestamp", "bool", "int", "float")
)
_Loader.yaml_implicit_resolvers = {
    first: [rule for rule in rules if rule[0] not in _REPLACED_TAGS]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool",
    re.compile(
        r"(y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE|n|N|no|No|NO|off|Off|OFF|false|False|FALSE)$"
    ),
    list("yYoOtTnNfF"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"[-+]?(0|[1-9][0-9_]*|0[0-7]+|0o[0-7]+|0b[01]+|0x[0-9a-fA-F]+)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    loader.flatten_mapping(node)
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _key(loader.construct_object(key_node, deep=True))
        if key in values:
            line = key_node.start_mark.line + 1
            loader.repeated.append(f'line {line}: key "{key}" already set in map')
        values[key] = loader.construct_object(value_node, deep=True)
    return values


def _construct_bool(loader: _Loader, node: yaml.ScalarNode) -> bool:
    return loader.construct_scalar(node).lower() in {"y", "yes", "on", "true"}


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node).replace("_", "").lower()
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.lstrip("+"))
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> float | int:
    value = float(loader.construct_scalar(node))
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)
_Loader.add_constructor("tag:yaml.org,2002:bool", _construct_bool)
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def _key(key: Hashable) -> str:
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, str | int | float):
        return str(key)
    raise Unreadable(f"error converting YAML to JSON: {key!r} can't be the name of a field")


def _line(error: yaml.MarkedYAMLError) -> str:
    """Where it is wrong, counted as Go's decoder counts: from 0, from 1 within a token."""
    mark = error.problem_mark
    if error.context_mark is not None and error.context_mark.line:
        mark = error.context_mark
    line = (mark.line if mark else 0) + isinstance(error, yaml.scanner.ScannerError)
    return f"line {line}: " if line else ""


def _parsed_yaml(body: bytes) -> tuple[Any, tuple[str, ...]]:
    try:
        loader = _Loader(body)
        return loader.get_single_data(), tuple(loader.repeated)
    except yaml.MarkedYAMLError as error:
        raise Unreadable(f"yaml: {_line(error)}{error.problem}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Unreadable(f"yaml: {error}") from error
