"""Claims and cards to judge."""

from typing import Any

import msgspec

from casaba.model.gpu import Gpu
from casaba.policy.admit import Verdict, judge_claim
from casaba.policy.slices import slice_spec
from casaba.wire.kubernetes import DeviceClass, ResourceSlice
from tests.unit.values import A10, NODE

DRIVER = "hami-core-gpu.project-hami.io"
SELECTOR = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].type == "hami-gpu"'

Spec = dict[str, Any]


def a_class(*parameters: Any) -> dict[str, DeviceClass]:
    """Our class as the chart has it, with config entries."""
    config = [{"opaque": {"driver": DRIVER, "parameters": one}} for one in parameters]
    spec = {"selectors": [{"cel": {"expression": SELECTOR}}], "config": config}
    return {DRIVER: msgspec.convert({"metadata": {"name": DRIVER}, "spec": spec}, DeviceClass)}


def a_slice(node: str = NODE, *gpus: Gpu) -> ResourceSlice:
    """What a node with these cards publishes; with one A10, if none is named."""
    spec = slice_spec(NODE, gpus or (A10,), 1) | {"nodeName": node}
    spec["pool"]["name"] = node
    return msgspec.convert({"metadata": {"name": node}, "spec": spec}, ResourceSlice)


def request(name: str = "gpu", class_name: str = DRIVER, **fields: Any) -> Spec:
    """A request with `exactly`."""
    return {"name": name, "exactly": {"deviceClassName": class_name} | fields}


def amounts(**asked: Any) -> Spec:
    """A request for so much."""
    return request(capacity={"requests": asked})


def first_of(*asked: Spec, name: str = "gpu") -> Spec:
    """A request with alternatives, each for so much."""
    forms = [
        {"name": f"a{index}", "deviceClassName": DRIVER, "capacity": {"requests": one}}
        for index, one in enumerate(asked)
    ]
    return {"name": name, "firstAvailable": forms}


def flat(asked: Spec) -> Spec:
    """The request in the form of v1beta1."""
    return {key: value for key, value in asked.items() if key != "exactly"} | dict(asked["exactly"])


def claim(*requests: Spec, **devices: Any) -> Spec:
    """A claim's spec."""
    return {"devices": {"requests": list(requests)} | devices}


def parameters(driver: str = DRIVER, requests: tuple[str, ...] = (), **fields: Any) -> Spec:
    """A config entry with SliceParameters."""
    content = {"apiVersion": "casaba.dev/v1alpha1", "kind": "SliceParameters"} | fields
    return {"requests": list(requests), "opaque": {"driver": driver, "parameters": content}}


def judged(spec: Any, *slices: ResourceSlice, at: str = "spec") -> Verdict:
    """The verdict in a cluster with the class and these slices; by default one A10."""
    return judge_claim(spec, slices or (a_slice(),), a_class(), at=at)
