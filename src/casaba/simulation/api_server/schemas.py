"""The shapes of the kinds that the simulated server knows, as Kubernetes 1.36's OpenAPI tells.

The definitions come from a real kube-apiserver, see tools/gen_api_schemas.py. They hold no prose.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo

REFERENCE = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_NAMED_TYPES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
    f"{_META}.FieldsV1": "any",
    f"{_META}.Time": "time",
    f"{_META}.MicroTime": "micro-time",
}
_NULL_TIMES: Mapping[str, tuple[str, ...]] = {
    "ContainerStateRunning": ("startedAt",),
    "ContainerStateTerminated": ("startedAt", "finishedAt"),
    "Event": ("firstTimestamp", "lastTimestamp", "eventTime"),
    "NamespaceCondition": ("lastTransitionTime",),
    "NodeCondition": ("lastHeartbeatTime", "lastTransitionTime"),
    "PodCondition": ("lastProbeTime", "lastTransitionTime"),
}
"""Times that the server writes as null if they are not set, instead of leaving them out."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Schema:
    """The type of one field.

    `type` is object (known properties), map, list, string, integer, number, boolean, quantity,
    int-or-string, time, micro-time or any.
    """

    type: str
    name: str = ""
    """Of a definition, as Go spells it: PodSpec."""
    format: str = ""
    properties: Mapping[str, "Schema"] = field(default_factory=dict, repr=False)
    items: "Schema | None" = field(default=None, repr=False)
    """Of a list its elements, of a map its values."""
    required: frozenset[str] = frozenset()
    default: Any = None
    """What the server writes if nothing is given; None if it leaves the field out."""
    defaults: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Of an object: its fields that are always there, with what stands in them."""
    list_type: str = ""
    """atomic (also if not told), set or map."""
    list_keys: tuple[str, ...] = ()
    is_atomic_map: bool = False
    """Whether server-side apply takes an object or a map as one value."""
    merge_key: str = ""
    """Of a strategic merge patch; empty for lists of plain values."""
    patch_strategies: frozenset[str] = frozenset()
    """merge, replace, retainKeys."""


ANY = Schema(type="any")


def of(info: ResourceInfo) -> Schema:
    """The schema of a resource's objects."""
    return of_kind(info.api_version, info.kind)


def of_kind(api_version: str, kind: str) -> Schema:
    """The schema of a kind, also of those that only subresources take, such as v1 Eviction."""
    return _compiled(_names_by_kind()[api_version, kind])


def knows(api_version: str, kind: str) -> bool:
    """Whether `of_kind` has a schema."""
    return (api_version, kind) in _names_by_kind()


def openapi(api_version: str) -> Object:
    """The OpenAPI v3 definitions (`components.schemas`) of a group version and what they need."""
    found: Object = {}
    waiting = [name for (version, _), name in _names_by_kind().items() if version == api_version]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _definitions()[name]
            waiting.extend(_references(found[name]))
    return dict(sorted(found.items()))


def zero_object(schema: Schema) -> Object:
    """What Go writes of an object of which nothing was told: defaults, and null for lists."""
    zero: Object = {
        name: None for name in schema.required if schema.properties[name].type in {"list", "map"}
    }
    for name, default in schema.defaults.items():
        member = schema.properties[name]
        zero[name] = zero_object(member) if member.type == "object" else default
    return zero


@cache
def _definitions() -> Mapping[str, Object]:
    path = files("casaba.simulation.api_server") / "schemas" / "definitions.json"
    definitions: Mapping[str, Object] = json.loads(path.read_text("utf-8"))
    return definitions


@cache
def _names_by_kind() -> Mapping[tuple[str, str], str]:
    names = {}
    for name, definition in _definitions().items():
        for gvk in definition.get("x-kubernetes-group-version-kind", ()):
            api_version = f"{gvk['group']}/{gvk['version']}" if gvk["group"] else gvk["version"]
            names[api_version, gvk["kind"]] = name
    return names


def _references(definition: Any) -> list[str]:
    found: list[str] = []
    if isinstance(definition, dict):
        for key, value in definition.items():
            found += [value.removeprefix(REFERENCE)] if key == "$ref" else _references(value)
    elif isinstance(definition, list):
        for value in definition:
            found += _references(value)
    return found


@cache
def _compiled(name: str) -> Schema:
    short_name = name.rpartition(".")[2]
    if name in _NAMED_TYPES:
        return Schema(type=_NAMED_TYPES[name], name=short_name)
    schema = _schema(_definitions()[name])
    null_times = dict.fromkeys(_NULL_TIMES.get(short_name, ()))
    return replace(schema, name=short_name, defaults={**null_times, **schema.defaults})


def _schema(definition: Mapping[str, Any]) -> Schema:
    """The schema of a property; what stands beside a reference belongs to the use, not the type."""
    for reference in (definition, *definition.get("allOf", ())):
        if "$ref" in reference:
            target = _compiled(reference["$ref"].removeprefix(REFERENCE))
            return replace(target, **_of_this_use(definition))
    return _inline(definition)


def _inline(definition: Mapping[str, Any]) -> Schema:
    own_type = definition.get("type", "any")
    properties = {
        name: _schema(member) for name, member in definition.get("properties", {}).items()
    }
    items = definition.get("items") or definition.get("additionalProperties")
    if own_type == "object" and not properties:
        own_type = "map" if items else "any"
    return Schema(
        type="list" if own_type == "array" else own_type,
        format=definition.get("format", ""),
        properties=properties,
        items=_schema(items) if items else None,
        required=frozenset(definition.get("required", ())),
        defaults={
            name: {**member.defaults, **member.default}
            if member.type == "object"
            else member.default
            for name, member in properties.items()
            if member.default is not None
        },
        **_of_this_use(definition),
    )


def _of_this_use(definition: Mapping[str, Any]) -> dict[str, Any]:
    """What the definition tells of one field: its default, and how its values are merged."""
    told: dict[str, Any] = {"default": definition.get("default")}
    if "x-kubernetes-list-type" in definition:
        told["list_type"] = definition["x-kubernetes-list-type"]
    if "x-kubernetes-list-map-keys" in definition:
        told["list_keys"] = tuple(definition["x-kubernetes-list-map-keys"])
    if "x-kubernetes-map-type" in definition:
        told["is_atomic_map"] = definition["x-kubernetes-map-type"] == "atomic"
    if "x-kubernetes-patch-merge-key" in definition:
        told["merge_key"] = definition["x-kubernetes-patch-merge-key"]
    if "x-kubernetes-patch-strategy" in definition:
        told["patch_strategies"] = frozenset(definition["x-kubernetes-patch-strategy"].split(","))
    return told
