"""Rules for the devices of a ResourceSlice (resource.k8s.io/v1 in 1.36)."""

import re
from collections.abc import Mapping
from typing import Any

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.binding_conditions import binding_condition_errors
from casaba.simulation.api_server.validation.capacities import capacity_errors
from casaba.simulation.api_server.validation.device_names import (
    effect_errors,
    label_errors,
    qualified_name_errors,
)
from casaba.simulation.api_server.validation.fields import (
    Errors,
    each,
    invalid,
    listed,
    mapped,
    required,
    too_long,
)
from casaba.simulation.api_server.validation.selectors import node_selector_errors

ATTRIBUTES_AND_CAPACITIES = 32
ATTRIBUTE_VALUES = 48
ATTRIBUTE_BYTES = 64
TAINTS = 16
CONSUMED_COUNTER_SETS = 2
CONSUMED_COUNTERS = 32
_SCALARS = ("bool", "int", "string", "version")
_LISTS = ("bools", "ints", "strings", "versions")
_NUMBER = r"(0|[1-9]\d*)"
_PRERELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?",
    re.ASCII,
)
_NODE_FIELDS = ("nodeName", "nodeSelector", "allNodes")
_NODE_CHOICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NO_NODE_CHOICE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is "
    "set to true in the ResourceSlice spec"
)


def device_errors(device: Object, path: str, old: Object | None, per_device: bool) -> Errors:
    """One device; `old` is the one of the same name before, whose taints may stay as they are."""
    yield from label_errors(device.get("name", ""), f"{path}.name")
    yield from _size_errors(device, path)
    yield from _content_errors(device, path)
    if old is None or old.get("taints") != device.get("taints"):
        yield from listed(f"{path}.taints", device.get("taints", ()), TAINTS, _taint_errors)
    yield from listed(
        f"{path}.consumesCounters",
        device.get("consumesCounters", ()),
        CONSUMED_COUNTER_SETS,
        _consumption_errors,
        lambda consumption: consumption.get("counterSet", ""),
    )
    yield from _node_errors(device, path, per_device)
    yield from binding_condition_errors(device, path)


def _content_errors(device: Object, path: str) -> Errors:
    yield from mapped(
        f"{path}.attributes",
        device.get("attributes", {}),
        None,
        qualified_name_errors,
        _attribute_errors,
    )
    shared = bool(device.get("allowMultipleAllocations"))
    yield from mapped(
        f"{path}.capacity",
        device.get("capacity", {}),
        None,
        qualified_name_errors,
        lambda capacity, place: capacity_errors(capacity, place, shared=shared),
    )


def _size_errors(device: Object, path: str) -> Errors:
    attributes = device.get("attributes", {})
    count = len(attributes) + len(device.get("capacity", {}))
    if count > ATTRIBUTES_AND_CAPACITIES:
        detail = (
            "the total number of attributes and capacities must not exceed "
            f"{ATTRIBUTES_AND_CAPACITIES}"
        )
        yield invalid(path, count, detail)
    values = sum(map(_value_count, attributes.values()))
    if values > ATTRIBUTE_VALUES:
        detail = f"the total number of attribute values must not exceed {ATTRIBUTE_VALUES}"
        yield invalid(path, values, detail)


def _value_count(attribute: Object) -> int:
    return sum(len(attribute.get(field, ())) for field in _LISTS) or 1


def _attribute_errors(attribute: Object, path: str) -> Errors:
    if "string" in attribute:
        yield from _string_errors(attribute["string"], f"{path}.string")
    if "version" in attribute:
        yield from _version_errors(attribute["version"], f"{path}.version")
    for index, text in enumerate(attribute.get("strings", ())):
        yield from _string_errors(text, f"{path}.strings[{index}]")
    for index, text in enumerate(attribute.get("versions", ())):
        yield from _version_errors(text, f"{path}.versions[{index}]")
    told = [field for field in (*_SCALARS, *_LISTS) if field in attribute]
    if len(told) != 1:
        shown: Any = attribute if told else ""
        yield invalid(path, shown, "exactly one value must be specified")


def _string_errors(text: str, path: str) -> Errors:
    if len(text.encode()) > ATTRIBUTE_BYTES:
        yield too_long(path, ATTRIBUTE_BYTES)


def _version_errors(text: str, path: str) -> Errors:
    if _SEMVER.fullmatch(text) is None:
        yield invalid(path, text, "must be a string compatible with semver.org spec 2.0.0")
    yield from _string_errors(text, path)


def _taint_errors(taint: Object, path: str) -> Errors:
    key, value = taint.get("key", ""), taint.get("value", "")
    yield from each(f"{path}.key", names.qualified(key), key)
    yield from each(f"{path}.value", names.label_value(value), value)
    if effect := taint.get("effect"):
        yield from effect_errors(effect, f"{path}.effect")
    else:
        yield required(f"{path}.effect")


def _consumption_errors(consumption: Object, path: str) -> Errors:
    if name := consumption.get("counterSet"):
        yield from label_errors(name, f"{path}.counterSet")
    else:
        yield required(f"{path}.counterSet")
    counters = consumption.get("counters", {})
    yield from counters_errors(counters, f"{path}.counters", CONSUMED_COUNTERS)


def counters_errors(counters: Mapping[str, Any], path: str, limit: int) -> Errors:
    """At least one counter, each well named; their values are quantities already."""
    if not counters:
        yield required(path)
    yield from mapped(path, counters, limit, label_errors, lambda counter, place: iter(()))


def _node_errors(device: Object, path: str, per_device: bool) -> Errors:
    if not per_device:
        if any(field in device for field in _NODE_FIELDS):
            yield invalid(path, None, _NO_NODE_CHOICE)
        return
    chosen = [f"`{field}`" for field in _NODE_FIELDS if device.get(field)]
    if name := device.get("nodeName"):
        yield from each(f"{path}.nodeName", names.subdomain(name), name)
    elif "nodeName" in device:
        yield invalid(f"{path}.nodeName", name, "must not be empty")
    if selector := device.get("nodeSelector"):
        yield from node_selector_errors(f"{path}.nodeSelector", selector)
    if device.get("allNodes") is False:
        yield invalid(f"{path}.allNodes", False, "must be either unset or set to true")
    if not chosen:
        yield required(path, _NODE_CHOICE)
    elif len(chosen) > 1:
        yield invalid(path, f"{{{', '.join(chosen)}}}", _NODE_CHOICE)
