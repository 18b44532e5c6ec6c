"""Rules for namespaces, nodes, events, leases, ConfigMaps and Secrets."""

import base64
from collections.abc import Mapping, Sequence

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.fields import (
    Errors,
    duplicate,
    each,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
)

CONTENT_BYTES = 1 << 20
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_DEFAULT_NAMESPACES = ("", "default")
_FROZEN = "field is immutable when `immutable` is set"


def namespace_errors(namespace: Object, old: Object | None) -> Errors:
    """Finalizers of the content."""
    for finalizer in namespace.get("spec", {}).get("finalizers", ()):
        yield from each("spec.finalizers", names.qualified(finalizer), finalizer)


def node_errors(node: Object, old: Object | None) -> Errors:
    """Taints, and what is set once."""
    spec, old_spec = node.get("spec", {}), (old or {}).get("spec", {})
    yield from _taints_errors(spec.get("taints", ()))
    if old_spec.get("podCIDRs") and spec.get("podCIDRs") != old_spec["podCIDRs"]:
        detail = 'node updates may not change podCIDR except from "" to valid'
        yield forbidden("spec.podCIDRs", detail)
    if old_spec.get("providerID") and spec.get("providerID") != old_spec["providerID"]:
        detail = 'node updates may not change providerID except from "" to valid'
        yield forbidden("spec.providerID", detail)


def _taints_errors(taints: Sequence[Object]) -> Errors:
    # The real server, too, tells of them as if they stood in the metadata.
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path = f"metadata.taints[{index}]"
        key, value, effect = (taint.get(name, "") for name in ("key", "value", "effect"))
        yield from each(f"{path}.key", names.qualified(key), key)
        if told := ";".join(names.label_value(value)):
            yield invalid(f"{path}.value", value, told)
        if not effect:
            yield required(f"{path}.effect")
        elif effect not in _EFFECTS:
            yield not_supported(f"{path}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            yield duplicate(path, taint, "taints must be unique by key and effect pair")
        seen.add((key, effect))


def event_errors(event: Object, old: Object | None) -> Errors:
    """The namespace is that of the object that the event is about."""
    involved = event.get("involvedObject", {}).get("namespace", "")
    namespace = event["metadata"].get("namespace", "")
    if involved != namespace and not (not involved and namespace in _DEFAULT_NAMESPACES):
        yield invalid("involvedObject.namespace", involved, "does not match event.namespace")


def lease_errors(lease: Object, old: Object | None) -> Errors:
    """A lease lasts, and is handed on so often."""
    spec = lease.get("spec", {})
    duration_s, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration_s is not None and duration_s <= 0:
        yield invalid("spec.leaseDurationSeconds", duration_s, "must be greater than 0")
    if transitions is not None and transitions < 0:
        detail = "must be greater than or equal to 0"
        yield invalid("spec.leaseTransitions", transitions, detail)


def config_map_errors(config_map: Object, old: Object | None) -> Errors:
    """Keys, size, and that what is immutable stays."""
    yield from _frozen_errors(config_map, old, ("data", "binaryData"))
    data, binary = config_map.get("data", {}), config_map.get("binaryData", {})
    yield from _key_errors("data", data)
    for key in data.keys() & binary.keys():
        yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    yield from _key_errors("binaryData", binary)
    size_bytes = sum(len(text.encode()) for text in data.values()) + _binary_bytes(binary)
    if size_bytes > CONTENT_BYTES:
        yield too_long("", CONTENT_BYTES)


def secret_errors(secret: Object, old: Object | None) -> Errors:
    """Keys, size, type, and that what is immutable stays."""
    if old is not None:
        yield from immutable("type", secret.get("type"), old.get("type"))
    yield from _frozen_errors(secret, old, ("data",))
    data = secret.get("data", {})
    yield from _key_errors("data", data)
    if _binary_bytes(data) > CONTENT_BYTES:
        yield too_long("data", CONTENT_BYTES)
    for key in _KEYS_BY_TYPE.get(secret.get("type", ""), ()):
        if key not in data:
            yield required(f"data[{key}]")


_KEYS_BY_TYPE: Mapping[str, Sequence[str]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def _frozen_errors(new: Object, old: Object | None, fields: Sequence[str]) -> Errors:
    if not (old or {}).get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", _FROZEN)
    for field in fields:
        if new.get(field) != (old or {}).get(field):
            yield forbidden(field, _FROZEN)


def _key_errors(path: str, data: Mapping[str, str]) -> Errors:
    for key in data:
        yield from each(f"{path}[{key}]", names.config_key(key), key)


def _binary_bytes(data: Mapping[str, str]) -> int:
    return sum(len(base64.b64decode(text)) for text in data.values())
