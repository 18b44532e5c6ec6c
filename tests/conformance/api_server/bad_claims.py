"""Bad claims, templates and classes of resource.k8s.io."""

from collections.abc import Iterator
from typing import Any

from tests.conformance.api_server.bad_object import BadObject, Change, Object, changed, put

REQUEST: Object = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
CLAIM: Object = {"metadata": {"name": "bad"}, "spec": {"devices": {"requests": [REQUEST]}}}
CLASS: Object = {"metadata": {"name": "bad"}, "spec": {}}


def _resource(
    name: str, plural: str, base: Object, *changes: Change, namespaced: bool
) -> BadObject:
    return BadObject(
        name=f"{plural}: {name}",
        group="resource.k8s.io",
        plural=plural,
        namespaced=namespaced,
        object=changed(base, *changes),
    )


def _claim(name: str, *changes: Change) -> BadObject:
    return _resource(name, "resourceclaims", CLAIM, *changes, namespaced=True)


def _request(name: str, /, **fields: Any) -> BadObject:
    exactly = {**REQUEST["exactly"], **fields}
    return _claim(name, put("spec/devices/requests/0/exactly", exactly))


def _class(name: str, *changes: Change) -> BadObject:
    return _resource(name, "deviceclasses", CLASS, *changes, namespaced=False)


def bad_claims() -> Iterator[BadObject]:
    requests = "spec/devices/requests"
    yield _claim("request without a name", put(f"{requests}/0/name", ...))
    yield _claim("request name", put(f"{requests}/0/name", "Gpu"))
    yield _claim("same request twice", put(requests, [REQUEST, REQUEST]))
    yield _claim(
        "too many requests", put(requests, [{**REQUEST, "name": f"r{i}"} for i in range(33)])
    )
    yield _claim("neither exactly nor alternatives", put(f"{requests}/0/exactly", ...))
    alternative = {"name": "a", "deviceClassName": "gpu.example.com"}
    yield _claim(
        "both exactly and alternatives", put(f"{requests}/0/firstAvailable", [alternative])
    )
    yield _claim(
        "same alternative twice",
        put(f"{requests}/0", {"name": "gpu", "firstAvailable": [alternative] * 2}),
    )
    yield _claim(
        "too many alternatives",
        put(
            f"{requests}/0",
            {"name": "gpu", "firstAvailable": [{**alternative, "name": f"a{i}"} for i in range(9)]},
        ),
    )
    yield _request("no class", deviceClassName="")
    yield _request("class name", deviceClassName="Gpu")
    yield _request("negative count", count=-1)
    yield _request("count for all", allocationMode="All", count=2)
    yield _request("mode", allocationMode="Some")
    yield _request("selector without CEL", selectors=[{}])
    yield _request(
        "expression that does not compile", selectors=[{"cel": {"expression": "device.driver =="}}]
    )
    yield _request(
        "expression that is no condition", selectors=[{"cel": {"expression": "device.driver"}}]
    )
    yield _request("unknown variable", selectors=[{"cel": {"expression": "card.driver == 'a'"}}])
    yield _request(
        "long expression", selectors=[{"cel": {"expression": "true || " * 1300 + "true"}}]
    )
    yield _request("too many selectors", selectors=[{"cel": {"expression": "true"}}] * 33)
    yield _request("toleration operator", tolerations=[{"key": "a", "operator": "Like"}])
    yield _request(
        "toleration value", tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]
    )
    yield _request(
        "toleration effect", tolerations=[{"key": "a", "operator": "Exists", "effect": "Some"}]
    )
    yield _request("toleration key", tolerations=[{"key": "a b", "operator": "Exists"}])
    for name, constraint in (
        ("constraint without an attribute", {"requests": ["gpu"]}),
        ("constraint on no request", {"requests": ["cpu"], "matchAttribute": "a.b/c"}),
        ("constraint on a request twice", {"requests": ["gpu", "gpu"], "matchAttribute": "a.b/c"}),
        ("attribute without a domain", {"matchAttribute": "model"}),
        ("attribute that is no name", {"matchAttribute": "a.b/c-d"}),
        ("distinct attribute without a domain", {"distinctAttribute": "model"}),
    ):
        yield _claim(name, put("spec/devices/constraints", [constraint]))
    opaque = {"driver": "gpu.example.com", "parameters": {"a": 1}}
    for name, config in (
        ("configuration without a driver's part", {"requests": ["gpu"]}),
        ("configuration of no request", {"requests": ["cpu"], "opaque": opaque}),
        ("driver of a configuration", {"opaque": {**opaque, "driver": "a b"}}),
        ("parameters that are a list", {"opaque": {**opaque, "parameters": [1]}}),
        ("parameters that are a text", {"opaque": {**opaque, "parameters": "a"}}),
        ("no parameters", {"opaque": {"driver": "gpu.example.com"}}),
        ("long parameters", {"opaque": {**opaque, "parameters": {"a": "b" * (11 << 10)}}}),
    ):
        yield _claim(name, put("spec/devices/config", [config]))
    yield _resource(
        "name in the metadata",
        "resourceclaimtemplates",
        {"metadata": {"name": "bad"}, "spec": {"metadata": {"name": "a"}, "spec": CLAIM["spec"]}},
        namespaced=True,
    )
    yield _resource(
        "count",
        "resourceclaimtemplates",
        {"metadata": {"name": "bad"}, "spec": {"spec": CLAIM["spec"]}},
        put("spec/spec/devices/requests/0/exactly/count", -1),
        namespaced=True,
    )


def bad_classes() -> Iterator[BadObject]:
    yield _class("name", put("metadata/name", "Bad"))
    yield _class("selector without CEL", put("spec/selectors", [{}]))
    yield _class("expression", put("spec/selectors", [{"cel": {"expression": "device"}}]))
    yield _class("configuration", put("spec/config", [{}]))
    yield _class("extended resource", put("spec/extendedResourceName", "gpu"))
