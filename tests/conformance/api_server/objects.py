"""Small objects for the cases."""

from typing import Any

from tests.conformance.api_server.door import ApiDoor, Object

CLAIMS = "resource.k8s.io/v1"
# No scheduler listens to this name, so pods stay as they were written.
NOBODY = "nobody"


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Object:
    """A ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": data or {},
    }


def pod(name: str, *, node: str = "", **metadata: Any) -> Object:
    """A pod that no kubelet ever runs."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {
            "schedulerName": NOBODY,
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "registry.example/nothing:1"}],
            **({"nodeName": node} if node else {}),
        },
    }


def claim(name: str, *requests: Object, **metadata: Any) -> Object:
    """A ResourceClaim; without requests one for a device of class `gpu`."""
    default = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return {
        "apiVersion": CLAIMS,
        "kind": "ResourceClaim",
        "metadata": {"name": name, **metadata},
        "spec": {"devices": {"requests": list(requests) or [default]}},
    }


def allocation(driver: str = "driver.example", pool: str = "pool") -> Object:
    """What a scheduler would write for `claim`."""
    result = {"request": "gpu", "driver": driver, "pool": pool, "device": "gpu-0"}
    return {"devices": {"results": [result]}}


async def made(api: ApiDoor, path: str, object_: Object) -> Object:
    """Create an object that must be accepted."""
    return (await api.post(path, object_)).object(201)


async def made_config_map(api: ApiDoor, name: str = "one", **fields: Any) -> Object:
    """Create a ConfigMap in the test's namespace."""
    return await made(api, api.core("configmaps"), config_map(name, **fields))
