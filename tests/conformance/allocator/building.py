"""Short ways to write the objects of a case, as the plain objects of the API.

Names that must differ between cases that run side by side on one cluster hold the word `univ`,
which each run replaces.
"""

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

UNIVERSE = "univ"
DRIVER = f"gpu.{UNIVERSE}.example.com"
OTHER_DRIVER = f"nic.{UNIVERSE}.example.com"
GPU_CLASS = f"{UNIVERSE}-gpu"
NIC_CLASS = f"{UNIVERSE}-nic"
NODE_LABEL = "casaba.test/node"
ZONE_LABEL = "casaba.test/zone"
_LONG_AGO = "2020-01-01T00:00:00Z"


@dataclass(frozen=True)
class Version:
    """A version attribute."""

    text: str


def node_name(name: str) -> str:
    return f"{UNIVERSE}-{name}"


def node(name: str = "a", **labels: str) -> Json:
    own = {NODE_LABEL: node_name(name), ZONE_LABEL: UNIVERSE}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node_name(name), "labels": {**own, **labels}},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
    }


def device(
    name: str,
    capacity: Json | None = None,
    *,
    shared: bool = False,
    attributes: Json | None = None,
    **fields: Any,
) -> Json:
    """Capacity as texts or as `amount`s; attributes as plain values or `Version`s."""
    made: Json = {"name": name, **fields}
    if attributes:
        made["attributes"] = {key: _attribute(value) for key, value in attributes.items()}
    if capacity:
        made["capacity"] = {
            key: value if isinstance(value, dict) else {"value": value}
            for key, value in capacity.items()
        }
    if shared:
        made["allowMultipleAllocations"] = True
    return made


def amount(value: str, default: str | None = None, **policy: Any) -> Json:
    """A capacity with a policy: a default, and `valid_values` or `min`, `max`, `step`."""
    made: Json = {"default": default} if default is not None else {}
    if "valid_values" in policy:
        made["validValues"] = policy.pop("valid_values")
    if policy:
        made["validRange"] = policy
    return {"value": value, "requestPolicy": made}


def _attribute(value: Any) -> Json:
    match value:
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case Version():
            return {"version": value.text}
    return {"string": value}


def slice_(
    *devices: Json,
    name: str = "a",
    pool: str = "a",
    on: str | None = "a",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    **fields: Any,
) -> Json:
    """A slice of pool `pool`; without `on`, the fields say where it can be used."""
    spec: Json = {
        "driver": driver,
        "pool": {
            "name": node_name(pool),
            "generation": generation,
            "resourceSliceCount": count,
        },
        **fields,
    }
    if on is not None:
        spec["nodeName"] = node_name(on)
    if devices:
        spec["devices"] = list(devices)
    prefix = "gpu" if driver == DRIVER else "nic"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{UNIVERSE}-{prefix}-{name}"},
        "spec": spec,
    }


def counters(**values: str) -> Json:
    return {name: {"value": value} for name, value in values.items()}


def uses(counter_set: str, **values: str) -> list[Json]:
    return [{"counterSet": counter_set, "counters": counters(**values)}]


def where(*terms: Json) -> Json:
    """A node selector with one term of these requirements."""
    return {"nodeSelectorTerms": [{"matchExpressions": list(terms)}]}


def label(key: str, operator: str, *values: str) -> Json:
    made: Json = {"key": key, "operator": operator}
    return {**made, "values": list(values)} if values else made


def class_(name: str, *expressions: str, config: list[Json] | None = None) -> Json:
    spec: Json = {"selectors": [{"cel": {"expression": text}} for text in expressions]}
    if config:
        spec["config"] = config
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def gpu_class(*expressions: str, config: list[Json] | None = None) -> Json:
    return class_(GPU_CLASS, f"device.driver == '{DRIVER}'", *expressions, config=config)


def nic_class(*expressions: str, config: list[Json] | None = None) -> Json:
    return class_(NIC_CLASS, f"device.driver == '{OTHER_DRIVER}'", *expressions, config=config)


def opaque(driver: str = DRIVER, **parameters: Any) -> Json:
    return {"opaque": {"driver": driver, "parameters": parameters}}


def exactly(name: str = "gpu", of: str = GPU_CLASS, **fields: Any) -> Json:
    return {"name": name, "exactly": _request(of, **fields)}


def sub(name: str, of: str = GPU_CLASS, **fields: Any) -> Json:
    return {"name": name, **_request(of, **fields)}


def first_of(name: str, *alternatives: Json) -> Json:
    return {"name": name, "firstAvailable": list(alternatives)}


def _request(
    of: str,
    *,
    cel: str | tuple[str, ...] = (),
    count: int = 1,
    every: bool = False,
    admin: bool = False,
    tolerate: list[Json] | None = None,
    **capacity: str,
) -> Json:
    """Other arguments are amounts of capacity; `_` in a name stands for `-`."""
    made: Json = {"deviceClassName": of}
    expressions = (cel,) if isinstance(cel, str) else cel
    if expressions:
        made["selectors"] = [{"cel": {"expression": text}} for text in expressions]
    made |= {"allocationMode": "All"} if every else {"allocationMode": "ExactCount", "count": count}
    if admin:
        made["adminAccess"] = True
    if tolerate:
        made["tolerations"] = tolerate
    if capacity:
        made["capacity"] = {"requests": capacity}
    return made


def claim(
    *requests: Json,
    name: str = "c",
    constraints: list[Json] | None = None,
    config: list[Json] | None = None,
) -> Json:
    devices: Json = {"requests": list(requests)}
    if constraints:
        devices["constraints"] = constraints
    if config:
        devices["config"] = config
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"{UNIVERSE}-{name}", "namespace": UNIVERSE},
        "spec": {"devices": devices},
    }


def match(attribute: str, *requests: str) -> Json:
    return _constraint("matchAttribute", attribute, requests)


def distinct(attribute: str, *requests: str) -> Json:
    return _constraint("distinctAttribute", attribute, requests)


def _constraint(kind: str, attribute: str, requests: tuple[str, ...]) -> Json:
    full = attribute if "/" in attribute else f"{DRIVER}/{attribute}"
    made: Json = {kind: full}
    return {**made, "requests": list(requests)} if requests else made


def holder(
    name: str,
    *results: Json,
) -> Json:
    """A claim that has got these devices already."""
    # Every result needs its request, or the API server refuses the status.
    requests = [exactly(result["request"]) for result in results]
    for request, result in zip(requests, results, strict=True):
        if result.get("adminAccess"):
            request["exactly"]["adminAccess"] = True
    made = claim(*requests, name=name)
    # Without a time, kube-scheduler could not reserve the claim: it would add one.
    allocation = {"devices": {"results": list(results)}, "allocationTimestamp": _LONG_AGO}
    made["status"] = {"allocation": allocation}
    return made


def held(
    device_name: str,
    *,
    pool: str = "a",
    driver: str = DRIVER,
    request: str = "r0",
    share: int | None = None,
    admin: bool = False,
    **amounts: str,
) -> Json:
    """A device of a `holder`; with `share`, a part of it."""
    made: Json = {
        "request": request,
        "driver": driver,
        "pool": node_name(pool),
        "device": device_name,
    }
    if share is not None:
        made["shareID"] = f"00000000-0000-4000-8000-{share:012d}"
    if amounts:
        made["consumedCapacity"] = amounts
    if admin:
        made["adminAccess"] = True
    return made
