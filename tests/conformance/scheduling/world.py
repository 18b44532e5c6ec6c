"""Nodes, cards and a namespace of a test's own, on any control plane; there is no kubelet."""

import contextlib
import re
import uuid
from collections.abc import AsyncIterator
from typing import Any

from casaba.kube import NAMESPACES, SERVICE_ACCOUNTS, KubeClient, NotFound
from tests.component.simulation.scheduling import (
    CLASSES,
    NODES,
    PODS,
    SLICES,
    Cluster,
    Object,
    claim,
    device_class,
    eventually,
    named,
    pod,
    template,
    templated,
)

LABEL = "conformance.test/world"


class World(Cluster):
    """A cluster in a cluster: its pods go to its nodes only, and the other way round."""

    def __init__(self, client: KubeClient, suffix: str) -> None:
        super().__init__(client, namespace=f"world-{suffix}")
        self.suffix = suffix
        self.device_class = f"class-{suffix}"
        self.nodes: list[str] = []
        self.classes: list[str] = []

    async def new_node(self, name: str, *, devices: int = 1, memory: str = "16Gi") -> str:
        """A node with cards; its whole name comes back."""
        whole = f"{name}-{self.suffix}"
        self.nodes.append(whole)
        await self.add_node(whole, devices=devices, memory=memory, **{LABEL: self.suffix})
        return whole

    async def new_class(self, name: str) -> None:
        """A class of all cards."""
        self.classes.append(name)
        await self.create(device_class(name))

    def a_claim(self, name: str, **asked: str) -> Object:
        """A claim of the world's class."""
        return claim(name, **{"class_name": self.device_class, **asked})

    def a_template(self, name: str, **asked: str) -> Object:
        """A template of the world's class."""
        return template(name, class_name=self.device_class, **asked)

    def a_pod(self, name: str, *entries: Object, on: str = "", **spec: Any) -> Object:
        """A pod for the world's nodes, or for one of them, whatever their taints."""
        here = {LABEL: self.suffix} | ({"kubernetes.io/hostname": on} if on else {})
        everything = {"tolerations": [{"operator": "Exists"}], "nodeSelector": here}
        return pod(name, *entries, **{**everything, **spec})

    async def tenant(self, name: str, claim_name: str, **asked: str) -> str:
        """A claim and its pod; the node that it got."""
        await self.create(self.a_claim(claim_name, **asked), self.a_pod(name, named(claim_name)))
        return await self.node_of(name)

    async def refused_for(self, name: str, reason: str) -> str:
        """What stands after the colon and before the preemption; waits for the reason."""

        async def look() -> str:
            message = await self.refusal(name)
            return message if reason in message else ""

        return re.sub(r"\d+/\d+", "N", await eventually(look))


@contextlib.asynccontextmanager
async def new_world(client: KubeClient) -> AsyncIterator[World]:
    """A world that is gone afterwards."""
    world = World(client, uuid.uuid4().hex[:8])
    await client.create(NAMESPACES, {"metadata": {"name": world.namespace}})
    try:
        await eventually(lambda: _has_account(world))
        await world.new_class(world.device_class)
        yield world
    finally:
        await _remove(world)


async def _has_account(world: World) -> bool:
    """The real server lets no pod in before that."""
    try:
        await world.client.get(SERVICE_ACCOUNTS, "default", namespace=world.namespace)
    except NotFound:
        return False
    return True


async def _remove(world: World) -> None:
    client = world.client
    for found in (await client.list(PODS, namespace=world.namespace)).items:
        with contextlib.suppress(NotFound):
            await world.delete_pod(found["metadata"]["name"])
    await client.delete(NAMESPACES, world.namespace)
    for resource, names in (
        (CLASSES, world.classes),
        (NODES, world.nodes),
        (SLICES, [f"{name}-gpu.test" for name in world.nodes]),
    ):
        for name in names:
            with contextlib.suppress(NotFound):
                await client.delete(resource, name)


__all__ = ["World", "named", "new_world", "templated"]
