"""Rules that claims, classes and slices share: names, parameters, selectors, tolerations."""

import json
from typing import Any

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.expressions import selector_expression_errors
from casaba.simulation.api_server.validation.fields import (
    Errors,
    each,
    invalid,
    listed,
    not_supported,
    required,
    too_long,
)

DRIVER_NAME_BYTES = 63
POOL_NAME_BYTES = 253
IDENTIFIER_BYTES = 32
SELECTORS = 32
CONFIGS = 32
PARAMETERS_BYTES = 10 << 10
EXPRESSION_BYTES = 10 << 10
TAINT_EFFECTS = ("NoExecute", "NoSchedule", "None")
_TOLERATION_OPERATORS = ("Equal", "Exists")


def driver_errors(name: str, path: str) -> Errors:
    """A subdomain, short and in any case of letters."""
    if not name:
        yield required(path)
        return
    if len(name) > DRIVER_NAME_BYTES:
        yield too_long(path, DRIVER_NAME_BYTES)
    yield from each(path, names.subdomain(name.lower()), name)


def pool_errors(name: str, path: str) -> Errors:
    """Subdomains with slashes between them."""
    if not name:
        yield required(path)
        return
    if len(name) > POOL_NAME_BYTES:
        yield too_long(path, POOL_NAME_BYTES)
    for part in name.split("/"):
        yield from each(path, names.subdomain(part), part)


def label_errors(name: str, path: str) -> Errors:
    """The name of a device, request, counter or counter set."""
    yield from each(path, names.label(name), name)


def class_errors(name: str, path: str) -> Errors:
    """The name of a device class."""
    if name:
        yield from each(path, names.subdomain(name), name)
    else:
        yield required(path)


def qualified_name_errors(name: str, path: str) -> Errors:
    """The name of an attribute or capacity; as the real server, lets two slashes pass."""
    parts = name.split("/")
    if len(parts) == 1:
        yield from _identifier_errors(name, path)
    elif len(parts) == 2:
        domain, identifier = parts
        if domain:
            yield from driver_errors(domain, path)
        else:
            yield invalid(path, "", "the domain must not be empty")
        if identifier:
            yield from _identifier_errors(identifier, path)
        else:
            yield invalid(path, "", "the name must not be empty")


def fully_qualified_name_errors(name: str, path: str) -> Errors:
    """A qualified name with its domain."""
    yield from qualified_name_errors(name, path)
    if "/" not in name:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid(path, name, detail)


def _identifier_errors(name: str, path: str) -> Errors:
    if len(name) > IDENTIFIER_BYTES:
        yield too_long(path, IDENTIFIER_BYTES)
    yield from each(path, names.identifier(name), name)


def selectors_errors(selectors: list[Object], path: str) -> Errors:
    """CEL expressions."""
    yield from listed(path, selectors, SELECTORS, _selector_errors)


def _selector_errors(selector: Object, path: str) -> Errors:
    if "cel" not in selector:
        yield required(f"{path}.cel")
        return
    expression, place = selector["cel"].get("expression", ""), f"{path}.cel.expression"
    if len(expression.encode()) > EXPRESSION_BYTES:
        yield too_long(place, EXPRESSION_BYTES)
    else:
        yield from selector_expression_errors(expression, place)


def opaque_errors(config: Object, path: str, *, stored: bool = False) -> Errors:
    """A driver's name and parameters that are a JSON object; stored ones may be too long."""
    if "opaque" not in config:
        yield required(f"{path}.opaque")
        return
    opaque = config["opaque"]
    yield from driver_errors(opaque.get("driver", ""), f"{path}.opaque.driver")
    limit_bytes = None if stored else PARAMETERS_BYTES
    yield from raw_object_errors(opaque.get("parameters"), f"{path}.opaque.parameters", limit_bytes)


def raw_object_errors(value: Any, path: str, limit_bytes: int | None) -> Errors:
    """Any JSON object, at most so long."""
    if value is None:
        yield required(path)
    elif limit_bytes is not None and _size_bytes(value) > limit_bytes:
        yield too_long(path, limit_bytes)
    elif not isinstance(value, dict):
        yield invalid(path, "<value omitted>", "must be a valid JSON object")


def _size_bytes(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def toleration_errors(toleration: Object, path: str) -> Errors:
    """Of a device's taints."""
    if key := toleration.get("key"):
        yield from each(f"{path}.key", names.qualified(key), key)
    operator, value = toleration.get("operator", ""), toleration.get("value", "")
    if operator == "Exists":
        if value:
            yield invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from each(f"{path}.value", names.label_value(value), value)
    elif operator:
        yield not_supported(f"{path}.operator", operator, _TOLERATION_OPERATORS)
    else:
        yield required(f"{path}.operator")
    if effect := toleration.get("effect"):
        yield from effect_errors(effect, f"{path}.effect")


def effect_errors(effect: str, path: str) -> Errors:
    """NoExecute, NoSchedule or None."""
    if effect not in TAINT_EFFECTS:
        yield not_supported(path, effect, TAINT_EFFECTS)
