"""Resources and good objects for the tests of what the simulated server knows of objects."""

import json
from typing import Any

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import RESOURCES, ResourceInfo
from casaba.simulation.api_server.strategy import decoded, prepared_for_create

NOW = "2026-01-02T03:04:05Z"
LATER = "2026-01-02T03:05:06Z"


def resource(plural: str) -> ResourceInfo:
    """The resource of a plural."""
    return next(info for info in RESOURCES if info.plural == plural)


PODS = resource("pods")
CLAIMS = resource("resourceclaims")
SLICES = resource("resourceslices")
CONFIG_MAPS = resource("configmaps")
NODES = resource("nodes")
NAMESPACES = resource("namespaces")


def body(document: Any) -> bytes:
    """As it is sent."""
    return json.dumps(document).encode()


def read(info: ResourceInfo, document: Object, validation: str = "Strict") -> Object:
    """A document as the server reads it."""
    return decoded(info, body(document), "application/json", validation)[0]


def created(info: ResourceInfo, document: Object) -> Object:
    """A document as the server stores it, with the metadata that the server adds."""
    new = prepared_for_create(info, read(info, document), now=NOW)
    place = {"namespace": "default"} if info.namespaced else {}
    metadata = {**new["metadata"], **place, "uid": "u", "creationTimestamp": NOW}
    return {**new, "metadata": metadata}


def pod(**spec: Any) -> Object:
    """A pod of one container."""
    return {
        "metadata": {"name": "pod"},
        "spec": {"containers": [{"name": "main", "image": "image:1"}], **spec},
    }


def claim(**exactly: Any) -> Object:
    """A claim of one request."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", **exactly}}
    return {"metadata": {"name": "claim"}, "spec": {"devices": {"requests": [request]}}}


def slice_(**device: Any) -> Object:
    """A slice of one device."""
    return {
        "metadata": {"name": "slice"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "node",
            "pool": {"name": "node", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", **device}],
        },
    }


def config_map(**data: str) -> Object:
    """A ConfigMap with some data."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "map"},
        **({"data": data} if data else {}),
    }
