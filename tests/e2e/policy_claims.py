"""Claims and templates, and what the admission policies say of each."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.policy_site import Object
from tests.e2e.workloads import DRIVER, claim


def asking(form: Object | None = None, config: Object | None = None, **amounts: Any) -> Object:
    """A claim's spec with one request of our class."""
    exactly: Object = {"deviceClassName": DRIVER} | (form or {})
    if amounts:
        exactly["capacity"] = {"requests": amounts}
    devices: Object = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if config is not None:
        devices["config"] = [{"opaque": {"driver": DRIVER, "parameters": config}}]
    return {"devices": devices}


def first_of(*amounts: Object, class_name: str = DRIVER) -> Object:
    """A claim's spec with alternatives."""
    alternatives = [
        {"name": f"a{index}", "deviceClassName": class_name, "capacity": {"requests": one}}
        for index, one in enumerate(amounts)
    ]
    return {"devices": {"requests": [{"name": "gpu", "firstAvailable": alternatives}]}}


def parameters(**fields: Any) -> Object:
    """SliceParameters with fields."""
    return {"apiVersion": "casaba.dev/v1alpha1", "kind": "SliceParameters"} | fields


def of_another_class(spec: Object) -> Object:
    """The same for a class that is not ours."""
    text = json.dumps(spec).replace(f'"deviceClassName": "{DRIVER}"', '"deviceClassName": "other"')
    return dict(json.loads(text))


HAMI = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}

CLAIMS: dict[str, tuple[Object, str]] = {
    "scenario": (asking(cores=50, memory="10Gi"), ""),
    "whole card": (asking(), ""),
    "no cap": (asking(cores=0, memory="1Mi"), ""),
    "full": (asking(cores=100), ""),
    "half a core": (asking(cores="500m"), ""),
    "alternatives": (first_of({"memory": "40Gi"}, {"memory": "10Gi"}), ""),
    "two": (asking({"count": 2}), ""),
    "all": (asking({"allocationMode": "All"}), ""),
    "weight": (asking(config=parameters(weight=1000)), ""),
    "all parameters": (
        asking(config=parameters(weight=1, priority=0, corePolicy="disable")),
        "",
    ),
    "no parameters": (asking(config=parameters()), ""),
    "other class": (of_another_class(asking(gpumem=1, cores=500)), ""),
    "other classes": (first_of({"gpumem": 1}, class_name="other"), ""),
    "nothing": ({"devices": {}}, ""),
    "null": ({"devices": {"requests": None, "config": None}}, ""),
    "classic name": (asking(gpumem=10240), "no card has the capacity gpumem; there are cores"),
    "classic names": (asking(gpumem=10240, gpucores=30), "no card has the capacity gpu"),
    "full name": (
        asking({"capacity": {"requests": {f"{DRIVER}/memory": "1Gi"}}}),
        f"the capacity {DRIVER}/memory;",
    ),
    "second alternative": (first_of({"memory": "1Gi"}, {"mem": "1Gi"}), "the capacity mem;"),
    "cores": (asking(cores=101), "cores: 101 is not a percentage"),
    "little more": (asking(cores="100001m"), "cores: 100001m is not a percentage"),
    "negative": (asking(cores=-1), "cores: -1 is not a percentage"),
    "bytes": (asking(memory="10240"), "memory: 10240 is less than the smallest slice, 1Mi"),
    "no memory": (asking(memory="0"), "memory: 0 is less than"),
    "late cores": (first_of({"cores": 1}, {"cores": 200}), "cores: 200 is not"),
    "count": (asking({"count": 33}), "count: 33 devices are more than a claim can hold"),
    "kind": (asking(config=parameters(kind="Slice")), "not Slice of casaba.dev/v1alpha1;"),
    "untyped": (asking(config={}), "of casaba.dev/v1alpha1, not nothing;"),
    "hami": (asking(config=HAMI), "not GpuConfig of resource.nvidia.com/v1beta1; leave the entry"),
    "field": (asking(config=parameters(wieght=1)), "no such field: wieght; there are weight"),
    "light": (asking(config=parameters(weight=0)), "parameters: wrong weight;"),
    "heavy": (asking(config=parameters(weight=1001)), "parameters: wrong weight;"),
    "text": (asking(config=parameters(weight="5")), "parameters: wrong weight;"),
    "fraction": (asking(config=parameters(weight=1.5)), "parameters: wrong weight;"),
    "no weight": (asking(config=parameters(weight=None)), "parameters: wrong weight;"),
    "huge": (asking(config=parameters(weight=10**30)), "parameters: wrong weight;"),
    "priority": (asking(config=parameters(priority=2)), "parameters: wrong priority;"),
    "policy": (
        asking(config=parameters(priority="0", corePolicy="FORCE")),
        "parameters: wrong priority corePolicy; allowed are",
    ),
    "only config": (
        of_another_class(asking(config=parameters(weight=0))),
        "parameters: wrong weight;",
    ),
}


def as_claim(spec: Object) -> Object:
    """A claim with this spec."""
    return claim("policy-case") | {"spec": spec}


def as_template(spec: Object) -> Object:
    """A template of claims with this spec."""
    return claim("policy-case") | {"kind": "ResourceClaimTemplate", "spec": {"spec": spec}}
