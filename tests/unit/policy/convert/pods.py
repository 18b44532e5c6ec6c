"""Pods in few words, and what came out of them in few words."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from casaba.policy.convert import Card, ClusterFacts, Conversion
from casaba.simulation.api_server.json_patch import operated
from casaba.simulation.api_server.requests import Object

MIB = 1 << 20
ENTRY = "casaba-gpus"

A10_MIB, A100_MIB, T4_MIB = 23028, 81920, 15360


def gpu(
    count: Any = None,
    *,
    mem: Any = None,
    percent: Any = None,
    cores: Any = None,
    priority: Any = None,
    env: Mapping[str, str] | None = None,
    **fields: Any,
) -> Object:
    """A container that asks for classic resources in its limits."""
    names = {
        "nvidia.com/gpu": count,
        "nvidia.com/gpumem": mem,
        "nvidia.com/gpumem-percentage": percent,
        "nvidia.com/gpucores": cores,
        "nvidia.com/priority": priority,
    }
    limits = {name: value for name, value in names.items() if value is not None}
    variables = [{"name": name, "value": value} for name, value in (env or {}).items()]
    return {
        "image": "image:1",
        "resources": {"limits": limits},
        **({"env": variables} if variables else {}),
        **fields,
    }


def sidecar(count: Any = None, **asked: Any) -> Object:
    """An init container that restarts always."""
    return gpu(count, restartPolicy="Always", **asked)


PLAIN: Object = {"image": "image:1"}
"""A container that asks for nothing."""


def pod(
    *,
    init: Mapping[str, Object] | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    generate_name: str = "",
    spec: Mapping[str, Any] | None = None,
    **containers: Object,
) -> Object:
    """A pod; containers by name, in which underscores stand for hyphens."""
    metadata: Object = {"generateName": generate_name} if generate_name else {"name": "pod"}
    if annotations is not None:
        metadata["annotations"] = dict(annotations)
    if labels is not None:
        metadata["labels"] = dict(labels)
    listed: Object = {"containers": _named(containers or {"main": PLAIN})}
    if init:
        listed["initContainers"] = _named(init)
    whole = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**listed, **(spec or {})},
    }
    return copy.deepcopy(whole)


def _named(containers: Mapping[str, Object]) -> list[Object]:
    return [{"name": name.replace("_", "-"), **one} for name, one in containers.items()]


def cards(*mib: int, product: str = "NVIDIA A10", node: str = "edge-1") -> tuple[Card, ...]:
    """Cards of one node."""
    return tuple(
        Card(
            memory_bytes=size * MIB,
            product_name=product,
            uuid=f"GPU-{node}-{product.split()[-1]}-{index}",
            node=node,
        )
        for index, size in enumerate(mib)
    )


def facts(*shown: Card, quotas: Iterable[str] = (), extended: Iterable[str] = ()) -> ClusterFacts:
    return ClusterFacts(
        cards=shown, quota_resources=frozenset(quotas), extended_resources=frozenset(extended)
    )


A10S = cards(A10_MIB, A10_MIB)
A100S = cards(A100_MIB, product="NVIDIA A100-SXM4-80GB", node="edge-2")
T4S = cards(T4_MIB, product="Tesla T4", node="edge-3")
TWO_A10 = facts(*A10S)
THREE_SIZES = facts(*A10S, *A100S, *T4S)
NOTHING = facts()


def patched(original: Object, conversion: Conversion) -> Object:
    """The pod with the patch on it; the given one stays."""
    document: Object = copy.deepcopy(original)
    for step in conversion.patch:
        document = operated(document, step)
    return document


def told(conversion: Conversion) -> tuple[str, ...]:
    """Each request, constraint and configuration of the claim in a line."""
    if not conversion.templates:
        return ()
    (template,) = conversion.templates
    devices = template.spec["spec"]["devices"]
    return (
        *(f"{request['name']}: {_request(request)}" for request in devices["requests"]),
        *(_constraint(constraint) for constraint in devices.get("constraints", ())),
        *(_config(config) for config in devices.get("config", ())),
    )


def _request(request: Object) -> str:
    if "exactly" in request:
        return _amounts(request["exactly"])
    alternatives = request["firstAvailable"]
    return " | ".join(f"{one['name']} {_amounts(one)}" for one in alternatives)


def _amounts(one: Object) -> str:
    asked = one.get("capacity", {}).get("requests", {})
    memory, cores = asked.get("memory", "all"), asked.get("cores", "all")
    assert one["count"] == 1
    conditions = len(one.get("selectors", ()))
    return f"{memory}/{cores}" + (f" where {conditions}" if conditions else "")


def _constraint(constraint: Object) -> str:
    names = " ".join(constraint["requests"])
    if "matchAttribute" in constraint:
        is_uuid = constraint["matchAttribute"].endswith("/uuid")
        return f"{'one card' if is_uuid else 'near'}: {names}"
    return f"different: {names}"


def _config(config: Object) -> str:
    parameters = dict(config["opaque"]["parameters"])
    assert parameters.pop("apiVersion") == "casaba.dev/v1alpha1"
    assert parameters.pop("kind") == "SliceParameters"
    said = ", ".join(f"{name} {value}" for name, value in parameters.items())
    return f"{said}: {' '.join(config['requests'])}"


def uses(changed: Object) -> dict[str, str]:
    """For each container the requests of the pod's claim that it uses."""
    spec = changed["spec"]
    found = {}
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        claims = container.get("resources", {}).get("claims", ())
        names = [claim["request"] for claim in claims if claim["name"].startswith(ENTRY)]
        if names:
            found[container["name"]] = " ".join(names)
    return found
