"""By its conditions the webhook hears of what it has to judge, and of nothing else."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from casaba.policy.cel import compiled_condition
from casaba.settings.host_paths import DRIVER_NAME
from tests.chart.rendering import NAMESPACE, Object, rendered


@functools.cache
def condition(kind: str, index: int = 0, *sets: str) -> str:
    webhook = rendered(*sets).one(kind, "hami-dra-webhook")["webhooks"][index]
    (only,) = webhook["matchConditions"]
    text: str = only["expression"]
    return text


def limits(**amounts: str) -> Object:
    return {"resources": {"limits": {f"nvidia.com/{k}": v for k, v in amounts.items()}}}


def pod(*containers: Object, **spec: Any) -> Object:
    named = [{"name": f"c{i}", "image": "i", **c} for i, c in enumerate(containers)]
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": named} | spec}


PLAIN: Object = {}
PODS: list[tuple[str, Object, bool]] = [
    ("count", pod(limits(gpu="1")), True),
    ("memory alone", pod(limits(gpumem="1024")), True),
    ("cores alone", pod(limits(gpucores="10")), True),
    ("priority alone", pod(limits(priority="0")), True),
    ("percentage", pod({"resources": {"limits": {"nvidia.com/gpumem-percentage": 50}}}), True),
    ("requests", pod({"resources": {"requests": {"nvidia.com/gpu": 1}}}), True),
    ("second container", pod(PLAIN, limits(gpu="1")), True),
    ("init container", pod(PLAIN, initContainers=[{"name": "i", **limits(gpu="1")}]), True),
    (
        "sidecar",
        pod(PLAIN, initContainers=[{"name": "i", "restartPolicy": "Always", **limits(gpu="1")}]),
        True,
    ),
    ("whole pod", pod(PLAIN, **limits(gpu="1")), True),
    ("nothing", pod(PLAIN), False),
    ("empty resources", pod({"resources": {}}), False),
    ("empty limits", pod({"resources": {"limits": {}, "requests": {}}}), False),
    ("cpu", pod({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}}), False),
    ("another vendor", pod({"resources": {"limits": {"amd.com/gpu": "1"}}}), False),
    ("MIG", pod({"resources": {"limits": {"nvidia.com/mig-1g.5gb": "1"}}}), False),
    ("claims", pod({"resources": {"claims": [{"name": "gpu"}]}}), False),
    ("plain init containers", pod(PLAIN, initContainers=[{"name": "i"}]), False),
    ("no containers", pod() | {"spec": {"containers": None}}, False),
    ("no list of containers", pod() | {"spec": {}}, False),
    (
        "no containers but an init container",
        pod(initContainers=[{"name": "i", **limits(gpu="1")}], containers=None),
        True,
    ),
    ("no init containers", pod(PLAIN, initContainers=[]), False),
    ("plain pod resources", pod(PLAIN, resources={"limits": {"cpu": "1"}}), False),
    ("many containers", pod(*[{"resources": {"limits": {"cpu": "1"}}}] * 500), False),
]


@pytest.mark.parametrize(("asked", "matches"), [p[1:] for p in PODS], ids=[p[0] for p in PODS])
@pytest.mark.parametrize("index", [0, 1], ids=["create", "update"])
def test_pods_that_name_our_resources(index: int, asked: Object, matches: bool) -> None:
    expression = condition("MutatingWebhookConfiguration", index)
    assert compiled_condition(expression).holds({"object": asked}) is matches


def test_names_are_those_of_the_values() -> None:
    expression = condition("MutatingWebhookConfiguration", 0, 'resourceName="example.com/card"')
    own = pod({"resources": {"limits": {"example.com/card": "1"}}})
    assert compiled_condition(expression).holds({"object": own})
    assert not compiled_condition(expression).holds({"object": pod(limits(gpu="1"))})


def exactly(name: str) -> Object:
    return {"requests": [{"name": "r", "exactly": {"deviceClassName": name}}]}


def alternatives(*names: str) -> Object:
    subs = [{"name": f"s{i}", "deviceClassName": name} for i, name in enumerate(names)]
    return {"requests": [{"name": "r", "firstAvailable": subs}]}


def config(**entry: Any) -> Object:
    return {"config": [entry], **exactly("other")}


CLAIMS: list[tuple[str, Object, bool]] = [
    ("our class", {"devices": exactly(DRIVER_NAME)}, True),
    ("our class second", {"devices": alternatives("other", DRIVER_NAME)}, True),
    ("our driver's config", {"devices": config(opaque={"driver": DRIVER_NAME})}, True),
    ("another class", {"devices": exactly("gpu.nvidia.com")}, False),
    ("other alternatives", {"devices": alternatives("a", "b")}, False),
    ("another driver's config", {"devices": config(opaque={"driver": "x"})}, False),
    ("config of another kind", {"devices": config(requests=["r"])}, False),
    ("a request of neither form", {"devices": {"requests": [{"name": "r"}]}}, False),
    ("no requests", {"devices": {}}, False),
    ("nothing", {}, False),
]


@pytest.mark.parametrize(("spec", "matches"), [c[1:] for c in CLAIMS], ids=[c[0] for c in CLAIMS])
@pytest.mark.parametrize("resource", ["resourceclaims", "resourceclaimtemplates"])
def test_claims_that_name_our_class_or_driver(resource: str, spec: Object, matches: bool) -> None:
    expression = condition("ValidatingWebhookConfiguration")
    asked = {
        "object": {"spec": spec if resource == "resourceclaims" else {"spec": spec}},
        "request": {"resource": {"group": "resource.k8s.io", "resource": resource}},
    }
    assert compiled_condition(expression).holds(asked) is matches


def selects(selector: Object, labels: dict[str, str]) -> bool:
    """As the API server reads `NotIn`: a label that is missing is in nothing."""
    terms = selector["matchExpressions"]
    assert {term["operator"] for term in terms} == {"NotIn"}
    return all(labels.get(term["key"]) not in term["values"] for term in terms)


@pytest.mark.parametrize(
    ("labels", "looked_at"),
    [
        ({"kubernetes.io/metadata.name": "default"}, True),
        ({"kubernetes.io/metadata.name": "kube-system"}, False),
        ({"kubernetes.io/metadata.name": NAMESPACE}, False),
        ({"kubernetes.io/metadata.name": "team", "hami.io/webhook": "ignore"}, False),
        ({"kubernetes.io/metadata.name": "team", "hami.io/webhook": "yes"}, True),
    ],
)
def test_namespaces_that_are_looked_at(labels: dict[str, str], looked_at: bool) -> None:
    chart = rendered()
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        for webhook in chart.one(kind, "hami-dra-webhook")["webhooks"]:
            assert selects(webhook["namespaceSelector"], labels) is looked_at


def test_what_was_converted_is_looked_at_again() -> None:
    update = rendered().one("MutatingWebhookConfiguration", "hami-dra-webhook")["webhooks"][1]
    assert update["objectSelector"] == {"matchLabels": {"hami.io/dra": "true"}}
    assert update["rules"][0]["operations"] == ["UPDATE"]
