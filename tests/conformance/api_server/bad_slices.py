"""Bad slices of resource.k8s.io."""

from collections.abc import Iterator
from typing import Any

from tests.conformance.api_server.bad_object import BadObject, Change, Object, changed, put

LONG = "a" * 64
DEVICE: Object = {
    "name": "gpu-0",
    "allowMultipleAllocations": True,
    "attributes": {"model": {"string": "A10"}},
    "capacity": {"memory": {"value": "10Gi"}},
}
SLICE: Object = {
    "metadata": {"name": "bad"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "node",
        "pool": {"name": "node", "generation": 1, "resourceSliceCount": 1},
        "devices": [DEVICE],
    },
}


def _slice(name: str, *changes: Change) -> BadObject:
    return BadObject(
        name=f"resourceslices: {name}",
        group="resource.k8s.io",
        plural="resourceslices",
        namespaced=False,
        object=changed(SLICE, *changes),
    )


def _device(name: str, /, **fields: Any) -> BadObject:
    return _slice(name, put("spec/devices/0", {**DEVICE, **fields}))


def _policy(name: str, policy: Object) -> BadObject:
    return _device(name, capacity={"memory": {"value": "10Gi", "requestPolicy": policy}})


def bad_slices() -> Iterator[BadObject]:
    yield _slice("no driver", put("spec/driver", ...))
    yield _slice("driver", put("spec/driver", "a_b"))
    yield _slice("long driver", put("spec/driver", LONG))
    yield _slice("pool name", put("spec/pool/name", "A//b"))
    yield _slice("no pool name", put("spec/pool/name", ""))
    yield _slice("no slice count", put("spec/pool/resourceSliceCount", 0))
    yield _slice("negative generation", put("spec/pool/generation", -1))
    yield _slice("no nodes", put("spec/nodeName", ...))
    yield _slice("empty node name", put("spec/nodeName", ""))
    yield _slice("two choices of nodes", put("spec/allNodes", True))
    yield _slice("not all nodes", put("spec/nodeName", ...), put("spec/allNodes", False))
    yield _slice(
        "two selector terms",
        put("spec/nodeName", ...),
        put(
            "spec/nodeSelector",
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}] * 2},
        ),
    )
    yield _slice(
        "devices and counters",
        put("spec/sharedCounters", [{"name": "c", "counters": {"m": {"value": "1"}}}]),
    )
    counters = {"name": "c", "counters": {"m": {"value": "1"}}}
    yield _slice(
        "counter set twice",
        put("spec/devices", ...),
        put("spec/sharedCounters", [counters, counters]),
    )
    yield _slice(
        "counter set without counters",
        put("spec/devices", ...),
        put("spec/sharedCounters", [{"name": "c", "counters": {}}]),
    )
    yield _slice(
        "counter name",
        put("spec/devices", ...),
        put("spec/sharedCounters", [{"name": "c", "counters": {"M": {"value": "1"}}}]),
    )
    yield _slice("device twice", put("spec/devices", [DEVICE, DEVICE]))
    yield _slice("too many devices", put("spec/devices", [{"name": f"d{i}"} for i in range(129)]))
    taint = {"key": "a", "effect": "NoSchedule"}
    yield _slice(
        "too many tainted devices",
        put("spec/devices", [{"name": f"d{i}", "taints": [taint]} for i in range(65)]),
    )
    yield _device("device name", name="Gpu")
    yield _device("attribute name", attributes={"a-b": {"int": 1}})
    yield _device("attribute without a domain", attributes={"/a": {"int": 1}})
    yield _device("long attribute name", attributes={"a" * 33: {"int": 1}})
    yield _device("attribute without a value", attributes={"a": {}})
    yield _device("attribute with two values", attributes={"a": {"int": 1, "bool": True}})
    yield _device("long text", attributes={"a": {"string": "b" * 65}})
    yield _device("version", attributes={"a": {"version": "1.2"}})
    yield _device("too many attributes", attributes={f"a{i}": {"int": i} for i in range(33)})
    yield _device("taint without an effect", taints=[{"key": "a"}])
    yield _device("taint effect", taints=[{"key": "a", "effect": "PreferNoSchedule"}])
    yield _device("taint key", taints=[{"key": "a b", "effect": "NoSchedule"}])
    yield _device("too many taints", taints=[{**taint, "key": f"a{i}"} for i in range(17)])
    yield _device("consumes nothing", consumesCounters=[{"counterSet": "c", "counters": {}}])
    yield _device("node name", nodeName="node")
    yield _device("binding conditions", bindingConditions=["a"])
    yield _device(
        "overlapping binding conditions", bindingConditions=["a"], bindingFailureConditions=["a"]
    )
    yield _device(
        "policy of a device that is not shared",
        allowMultipleAllocations=False,
        capacity={"memory": {"value": "10Gi", "requestPolicy": {"default": "1Gi"}}},
    )
    yield _policy("values without a default", {"validValues": ["1Gi"]})
    yield _policy("values out of order", {"default": "1Gi", "validValues": ["2Gi", "1Gi"]})
    yield _policy("value twice", {"default": "1Gi", "validValues": ["1Gi", "1Gi"]})
    yield _policy("value over the capacity", {"default": "1Gi", "validValues": ["1Gi", "11Gi"]})
    yield _policy("default that is no value", {"default": "3Gi", "validValues": ["1Gi", "2Gi"]})
    yield _policy(
        "too many values", {"default": "1", "validValues": [str(i) for i in range(1, 12)]}
    )
    yield _policy(
        "values and range", {"default": "1Gi", "validValues": ["1Gi"], "validRange": {"min": "1Gi"}}
    )
    yield _policy("range without a default", {"validRange": {"min": "1Gi"}})
    yield _policy("range without a minimum", {"default": "1Gi", "validRange": {"max": "2Gi"}})
    yield _policy("minimum over the capacity", {"default": "11Gi", "validRange": {"min": "11Gi"}})
    yield _policy("default under the minimum", {"default": "1Gi", "validRange": {"min": "2Gi"}})
    yield _policy(
        "maximum under the minimum", {"default": "2Gi", "validRange": {"min": "2Gi", "max": "1Gi"}}
    )
    yield _policy(
        "maximum over the capacity", {"default": "1Gi", "validRange": {"min": "1Gi", "max": "11Gi"}}
    )
    yield _policy(
        "step over the capacity", {"default": "1Gi", "validRange": {"min": "1Gi", "step": "10Gi"}}
    )
    yield _policy(
        "default off the steps", {"default": "3Gi", "validRange": {"min": "2Gi", "step": "2Gi"}}
    )
    yield _policy(
        "maximum off the steps",
        {"default": "2Gi", "validRange": {"min": "2Gi", "max": "5Gi", "step": "2Gi"}},
    )
