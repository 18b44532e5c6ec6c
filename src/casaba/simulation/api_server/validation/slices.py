"""Rules for ResourceSlice and DeviceClass (resource.k8s.io/v1 in 1.36)."""

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.device_names import (
    CONFIGS,
    SELECTORS,
    driver_errors,
    label_errors,
    opaque_errors,
    pool_errors,
    selectors_errors,
)
from casaba.simulation.api_server.validation.devices import counters_errors, device_errors
from casaba.simulation.api_server.validation.fields import (
    Errors,
    each,
    immutable,
    invalid,
    listed,
    required,
    too_many,
)
from casaba.simulation.api_server.validation.selectors import node_selector_errors

DEVICES = 128
DEVICES_WITH_ADVANCED_FEATURES = 64
COUNTER_SETS = 8
COUNTERS = 32
_LIST_ATTRIBUTES = frozenset({"bools", "ints", "strings", "versions"})
_NODE_CHOICE = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)


def slice_errors(slice_: Object, old: Object | None) -> Errors:
    """A pool's devices, and who may use them."""
    spec = slice_["spec"]
    yield from driver_errors(spec.get("driver", ""), "spec.driver")
    yield from _pool_errors(spec.get("pool", {}))
    if old is not None:
        yield from _changed_errors(spec, old["spec"])
    yield from _node_errors(spec)
    if "sharedCounters" in spec and "devices" in spec:
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    known = {device["name"]: device for device in (old or {"spec": {}})["spec"].get("devices", ())}
    per_device = bool(spec.get("perDeviceNodeSelection"))
    yield from listed(
        "spec.devices",
        spec.get("devices", ()),
        _device_limit(spec),
        lambda device, path: device_errors(device, path, known.get(device["name"]), per_device),
        _name,
    )
    yield from listed(
        "spec.sharedCounters", spec.get("sharedCounters", ()), COUNTER_SETS, _counter_set, _name
    )


def _name(named: Object) -> str:
    return str(named.get("name", ""))


def _pool_errors(pool: Object) -> Errors:
    yield from pool_errors(pool.get("name", ""), "spec.pool.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        yield invalid("spec.pool.resourceSliceCount", count, "must be greater than zero")
    if generation < 0:
        detail = "must be greater than or equal to zero"
        yield invalid("spec.pool.generation", generation, detail)


def _changed_errors(spec: Object, old: Object) -> Errors:
    yield from immutable("spec.pool.name", spec["pool"]["name"], old["pool"]["name"])
    yield from immutable("spec.driver", spec["driver"], old["driver"])
    yield from immutable("spec.nodeName", spec.get("nodeName"), old.get("nodeName"))


def _node_errors(spec: Object) -> Errors:
    chosen = []
    if "nodeName" in spec:
        if name := spec["nodeName"]:
            chosen.append("`nodeName`")
            yield from each("spec.nodeName", names.subdomain(name), name)
        else:
            detail = "must be either unset or set to a non-empty string"
            yield invalid("spec.nodeName", name, detail)
    if "nodeSelector" in spec:
        chosen.append("`nodeSelector`")
        yield from _slice_selector_errors(spec["nodeSelector"])
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            chosen.append(f"`{field}`")
        elif field in spec:
            yield invalid(f"spec.{field}", False, "must be either unset or set to true")
    if not chosen:
        yield required("spec", _NODE_CHOICE)
    elif len(chosen) > 1:
        detail = f"{_NODE_CHOICE}, but multiple fields are set"
        yield invalid("spec", f"{{{', '.join(chosen)}}}", detail)


def _slice_selector_errors(selector: Object) -> Errors:
    yield from node_selector_errors("spec.nodeSelector", selector)
    terms = selector.get("nodeSelectorTerms", [])
    if len(terms) != 1:
        detail = "must have exactly one node selector term"
        yield invalid("spec.nodeSelector.nodeSelectorTerms", terms, detail)


def _device_limit(spec: Object) -> int:
    for device in spec.get("devices", ()):
        lists = (_LIST_ATTRIBUTES & value.keys() for value in device.get("attributes", {}).values())
        if device.get("taints") or device.get("consumesCounters") or any(lists):
            return DEVICES_WITH_ADVANCED_FEATURES
    return DEVICES


def _counter_set(counter_set: Object, path: str) -> Errors:
    if name := counter_set.get("name"):
        yield from label_errors(name, f"{path}.name")
    else:
        yield required(f"{path}.name")
    yield from counters_errors(counter_set.get("counters", {}), f"{path}.counters", COUNTERS)


def class_errors(class_: Object, old: Object | None) -> Errors:
    """Selectors and configuration; what did not change is not looked at again."""
    spec, old_spec = class_["spec"], (old or {}).get("spec", {})
    selectors, configs = spec.get("selectors", []), spec.get("config", [])
    if selectors != old_spec.get("selectors", []):
        yield from selectors_errors(selectors, "spec.selectors")
    elif len(selectors) > SELECTORS:
        yield too_many("spec.selectors", len(selectors), SELECTORS)
    stored = old is not None and configs == old_spec.get("config", [])
    yield from listed(
        "spec.config",
        configs,
        CONFIGS,
        lambda config, path: opaque_errors(config, path, stored=stored),
    )
    name = spec.get("extendedResourceName")
    if name is not None and not _is_extended_resource(name):
        yield invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def _is_extended_resource(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    if not slash or domain.endswith("kubernetes.io") or name.startswith("requests."):
        return False
    return not any(names.qualified(f"requests.{name}"))
