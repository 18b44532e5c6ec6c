"""A control plane without nodes of its own: objects to put in, and conditions to wait for."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from casaba import kube
from casaba.kube import KubeClient, NotFound
from casaba.simulation.controllers import ControllerSettings, SimulatedControllers
from casaba.simulation.scheduler import SchedulerSettings, SimulatedScheduler

T = TypeVar("T")

DRIVER = "gpu.test"
NAMESPACE = "default"
WAIT_S = 20.0

Object = dict[str, Any]

PODS = kube.PODS.decoded_as(dict)
NODES = kube.NODES.decoded_as(dict)
CLAIMS = kube.RESOURCE_CLAIMS.decoded_as(dict)
CLASSES = kube.DEVICE_CLASSES.decoded_as(dict)
SLICES = kube.RESOURCE_SLICES.decoded_as(dict)
TEMPLATES = kube.RESOURCE_CLAIM_TEMPLATES
EVENTS = kube.EVENTS.decoded_as(dict)
LEASES = kube.LEASES.decoded_as(dict)

FAST = SchedulerSettings(first_backoff_s=0.05, last_backoff_s=0.3)

KUBELESS = ControllerSettings(now_s=lambda: 0.0)
"""Nodes live without signs of life, however long a test takes: no time passes for them."""


@contextlib.asynccontextmanager
async def running(*loops: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run until the block ends; a loop that fails ends the block."""

    async def run(loop: Callable[[], Awaitable[None]]) -> None:
        await loop()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(loop)) for loop in loops]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


@contextlib.asynccontextmanager
async def control_plane(
    client: KubeClient,
    *,
    scheduler: SchedulerSettings = FAST,
    controllers: ControllerSettings = KUBELESS,
) -> AsyncIterator[None]:
    """Scheduler and controllers on one client."""
    parts = SimulatedScheduler(client, scheduler), SimulatedControllers(client, controllers)
    async with running(*(part.run for part in parts)):
        yield


def node(name: str, **labels: str) -> Object:
    """A node with room for anything."""
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    }


def device_class(name: str = DRIVER) -> Object:
    """All devices of the driver."""
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    return {"metadata": {"name": name}, "spec": {"selectors": [selector]}}


def slice_of(node_name: str, *, devices: int = 1, memory: str = "16Gi") -> Object:
    """Cards of a node that can be shared by memory and cores."""
    capacity = {
        "cores": {"value": "100", "requestPolicy": _policy("100", "0", "100", "1")},
        "memory": {"value": memory, "requestPolicy": _policy(memory, "1Mi", memory, "1Mi")},
    }
    return {
        "metadata": {"name": f"{node_name}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"gpu-{number}",
                    "allowMultipleAllocations": True,
                    "capacity": capacity,
                }
                for number in range(devices)
            ],
        },
    }


def _policy(default: str, least: str, most: str, step: str) -> Object:
    return {"default": default, "validRange": {"min": least, "max": most, "step": step}}


def claim_spec(*, memory: str = "4Gi", cores: str = "10", class_name: str = DRIVER) -> Object:
    """One share of one card."""
    requests = {"memory": memory, "cores": cores}
    exactly = {"deviceClassName": class_name, "capacity": {"requests": requests}}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def claim(name: str, **asked: str) -> Object:
    """A claim by its own name."""
    return {"metadata": {"name": name}, "spec": claim_spec(**asked)}


def template(name: str, **asked: str) -> Object:
    """Claims to be made for pods."""
    return {
        "metadata": {"name": name},
        "spec": {"metadata": {"labels": {"made": "yes"}}, "spec": claim_spec(**asked)},
    }


def pod(name: str, *entries: Object, **spec: Any) -> Object:
    """A pod that uses all of its claims."""
    return {
        "metadata": {"name": name},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "resources": {"claims": [{"name": entry["name"]} for entry in entries]},
                }
            ],
            "resourceClaims": list(entries),
            **spec,
        },
    }


def named(claim_name: str, entry: str = "gpu") -> Object:
    """A pod's entry for a claim by its own name."""
    return {"name": entry, "resourceClaimName": claim_name}


def templated(template_name: str, entry: str = "gpu") -> Object:
    """A pod's entry for a claim to be made."""
    return {"name": entry, "resourceClaimTemplateName": template_name}


def first_card_of(node_name: str) -> Object:
    """The allocation of a whole card."""
    result = {"request": "gpu", "driver": DRIVER, "pool": node_name, "device": "gpu-0"}
    here = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    return {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
    }


class Cluster:
    """What tests do to a cluster and see of it."""

    def __init__(self, client: KubeClient, namespace: str = NAMESPACE) -> None:
        self.client = client
        self.namespace = namespace

    async def add_node(
        self, name: str, *, devices: int = 1, memory: str = "16Gi", **labels: str
    ) -> None:
        """A node, with cards unless `devices` is 0."""
        body = node(name, **labels)
        await self.client.create(NODES, body)
        await self.client.patch(NODES, name, {"status": body["status"]}, subresource="status")
        if devices:
            await self.client.create(SLICES, slice_of(name, devices=devices, memory=memory))

    async def create(self, *objects: Object) -> None:
        """Pods, claims, templates and classes, told apart by their specs."""
        for object_ in objects:
            spec = object_["spec"]
            if "containers" in spec:
                await self.client.create(PODS, object_, namespace=self.namespace)
            elif "spec" in spec:
                await self.client.create(TEMPLATES, object_, namespace=self.namespace)
            elif "devices" in spec:
                await self.client.create(CLAIMS, object_, namespace=self.namespace)
            else:
                await self.client.create(CLASSES, object_)

    async def pod(self, name: str) -> Object:
        """A pod; empty if it is gone."""
        try:
            return await self.client.get(PODS, name, namespace=self.namespace)
        except NotFound:
            return {}

    async def claim(self, name: str) -> Object:
        """A claim; empty if it is gone."""
        try:
            return await self.client.get(CLAIMS, name, namespace=self.namespace)
        except NotFound:
            return {}

    async def claims(self) -> list[Object]:
        """All claims."""
        return list((await self.client.list(CLAIMS, namespace=self.namespace)).items)

    async def node_of(self, name: str) -> str:
        """Where a pod was put; waits for it."""

        async def look() -> str:
            return str((await self.pod(name)).get("spec", {}).get("nodeName", ""))

        return await eventually(look)

    async def refusal(self, name: str) -> str:
        """The message of a pod that can't be scheduled; waits for it."""

        async def look() -> str:
            conditions = (await self.pod(name)).get("status", {}).get("conditions", [])
            found = [
                c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"
            ]
            return str(found[0]["message"]) if found else ""

        return await eventually(look)

    async def events(self, name: str, reason: str) -> list[str]:
        """What was told of an object for a reason; waits for the first."""

        async def look() -> list[str]:
            listed = await self.client.list(EVENTS, namespace=self.namespace)
            return [
                event["message"]
                for event in listed.items
                if event["involvedObject"]["name"] == name and event["reason"] == reason
            ]

        return await eventually(look)

    async def allocate(self, name: str, node_name: str) -> None:
        """Write a claim's allocation by hand: the first card of a node."""
        await self.client.patch(
            CLAIMS,
            name,
            {"status": {"allocation": first_card_of(node_name)}},
            namespace=self.namespace,
            subresource="status",
        )

    async def deallocate(self, name: str) -> None:
        """As whoever gives back what nobody uses."""
        await self.client.patch(
            CLAIMS,
            name,
            {"status": {"allocation": None}},
            namespace=self.namespace,
            subresource="status",
        )

    async def reserve(self, name: str, *users: Object) -> None:
        """Write by hand who uses an allocated claim."""
        await self.client.patch(
            CLAIMS,
            name,
            {"status": {"reservedFor": list(users)}},
            namespace=self.namespace,
            subresource="status",
        )

    async def finish(self, name: str, phase: str = "Succeeded") -> None:
        """As a kubelet tells that a pod has ended."""
        await self.client.patch(
            PODS, name, {"status": {"phase": phase}}, namespace=self.namespace, subresource="status"
        )

    async def delete_pod(self, name: str) -> None:
        """At once, as after a kubelet has ended it."""
        await self.client.delete(PODS, name, namespace=self.namespace, grace_period_s=0)


async def eventually(look: Callable[[], Awaitable[T]]) -> T:
    """What `look` returns once that is something; fails after a while."""
    found = await look()
    async with asyncio.timeout(WAIT_S):
        while not found:
            await asyncio.sleep(0.01)
            found = await look()
    return found
