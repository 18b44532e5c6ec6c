"""The simulated controllers on the simulated API server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from casaba.kube import (
    CONFIG_MAPS,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    KubeClient,
    NotFound,
    Propagation,
    Resource,
)
from casaba.simulation.api_server.server import SimulatedApiServer
from casaba.simulation.controllers import ControllerSettings
from tests.component.simulation.scheduling import (
    LEASES,
    NODES,
    PODS,
    SLICES,
    Cluster,
    Object,
    control_plane,
    device_class,
    eventually,
    pod,
    slice_of,
    template,
    templated,
)

BEATS = ("2030-01-01T00:00:00Z", "2030-01-01T00:01:40Z")


class Clock:
    """Time that tests move."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def cluster(clock: Clock) -> AsyncIterator[Cluster]:
    settings = ControllerSettings(orphan_quarantine_s=0.05, now_s=clock)
    async with SimulatedApiServer() as server:
        async with KubeClient(server.admin_config()) as client:
            async with control_plane(client, controllers=settings):
                yield Cluster(client)


async def is_gone(
    client: KubeClient, resource: Resource[Any], name: str, namespace: str | None = "default"
) -> bool:
    try:
        await client.get(resource, name, namespace=namespace)
    except NotFound:
        return True
    return False


async def test_slices_and_pods_go_with_their_node(cluster: Cluster) -> None:
    await cluster.add_node("a", devices=0)
    node = await cluster.client.get(NODES, "a")
    owned = slice_of("a")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": node["metadata"]["uid"]}
    ]
    await cluster.client.create(SLICES, owned)
    await cluster.create(pod("tenant"))
    await cluster.node_of("tenant")
    await cluster.client.delete(NODES, "a")
    await eventually(lambda: is_gone(cluster.client, SLICES, owned["metadata"]["name"], None))
    await eventually(lambda: is_gone(cluster.client, PODS, "tenant"))


async def test_an_object_whose_owner_never_was_goes_too(cluster: Cluster) -> None:
    child = config_map("child", {"kind": "ConfigMap", "name": "parent", "uid": "nobody"})
    await cluster.client.create(CONFIG_MAPS, child, namespace="default")
    await eventually(lambda: is_gone(cluster.client, CONFIG_MAPS, "child"))


def config_map(name: str, *owners: Object) -> Object:
    references = [{"apiVersion": "v1", "blockOwnerDeletion": True, **owner} for owner in owners]
    return {"metadata": {"name": name, "ownerReferences": references}}


async def family(cluster: Cluster) -> None:
    parent = await cluster.client.create(CONFIG_MAPS, config_map("parent"), namespace="default")
    owner = {"kind": "ConfigMap", "name": "parent", "uid": parent["metadata"]["uid"]}
    await cluster.client.create(CONFIG_MAPS, config_map("child", owner), namespace="default")


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_dependents_go_with_their_owner(cluster: Cluster, propagation: Propagation) -> None:
    await family(cluster)
    await cluster.client.delete(CONFIG_MAPS, "parent", namespace="default", propagation=propagation)
    await eventually(lambda: is_gone(cluster.client, CONFIG_MAPS, "child"))
    await eventually(lambda: is_gone(cluster.client, CONFIG_MAPS, "parent"))


async def test_dependents_may_stay(cluster: Cluster) -> None:
    await family(cluster)
    await cluster.client.delete(CONFIG_MAPS, "parent", namespace="default", propagation="Orphan")
    await eventually(lambda: is_gone(cluster.client, CONFIG_MAPS, "parent"))
    child = await cluster.client.get(CONFIG_MAPS, "child", namespace="default")
    assert not child["metadata"].get("ownerReferences")


async def test_an_owner_in_the_foreground_waits_for_its_dependents(cluster: Cluster) -> None:
    await family(cluster)
    held = {"metadata": {"finalizers": ["test/held"]}}
    await cluster.client.patch(CONFIG_MAPS, "child", held, namespace="default")
    await cluster.client.delete(
        CONFIG_MAPS, "parent", namespace="default", propagation="Foreground"
    )

    async def child_leaves() -> bool:
        child = await cluster.client.get(CONFIG_MAPS, "child", namespace="default")
        return "deletionTimestamp" in child["metadata"]

    await eventually(child_leaves)
    assert not await is_gone(cluster.client, CONFIG_MAPS, "parent")
    free = {"metadata": {"finalizers": None}}
    await cluster.client.patch(CONFIG_MAPS, "child", free, namespace="default")
    await eventually(lambda: is_gone(cluster.client, CONFIG_MAPS, "parent"))


async def test_a_pod_that_is_deleted_takes_its_claims_along(cluster: Cluster) -> None:
    await cluster.add_node("a")
    await cluster.create(device_class(), template("shares"), pod("tenant", templated("shares")))
    await cluster.node_of("tenant")
    await cluster.delete_pod("tenant")

    async def no_claims() -> bool:
        return not await cluster.claims()

    await eventually(no_claims)


async def test_a_namespace_has_a_service_account_until_it_goes_with_all_in_it(
    cluster: Cluster,
) -> None:
    client = cluster.client
    await client.create(NAMESPACES, {"metadata": {"name": "space"}})

    async def has_account() -> bool:
        return not await is_gone(client, SERVICE_ACCOUNTS, "default", "space")

    await eventually(has_account)
    await client.create(CONFIG_MAPS, config_map("one"), namespace="space")
    await client.delete(NAMESPACES, "space")
    await eventually(lambda: is_gone(client, NAMESPACES, "space", None))
    assert await is_gone(client, CONFIG_MAPS, "one", "space")


async def test_a_silent_node_is_tainted_and_loses_its_pods(cluster: Cluster, clock: Clock) -> None:
    client = cluster.client
    await cluster.add_node("a", devices=0)
    await report(client, BEATS[0])
    await renew(client, "2030-01-01T00:00:00.000000Z")
    patience = [{"operator": "Exists"}]
    short = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}]
    await cluster.create(pod("patient", tolerations=patience), pod("hasty", tolerations=short))
    for name in ("patient", "hasty"):
        await cluster.node_of(name)
    clock.now_s += 49
    await renew(client, "2030-01-01T00:00:49.000000Z")
    await untouched(cluster)
    clock.now_s += 51
    # Any news of the node makes the controller look; its own timer is too slow for a test.
    await client.patch(NODES, "a", {"metadata": {"labels": {"news": "1"}}})

    async def leaves() -> bool:
        found = await cluster.pod("hasty")
        return not found or "deletionTimestamp" in found["metadata"]

    await eventually(leaves)
    silent = await client.get(NODES, "a")
    assert ready(silent) == "Unknown"
    assert {(taint["key"], taint["effect"]) for taint in silent["spec"]["taints"]} == {
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    }
    assert "deletionTimestamp" not in (await cluster.pod("patient"))["metadata"]
    await report(client, BEATS[1])

    async def is_clean() -> bool:
        return not (await client.get(NODES, "a"))["spec"].get("taints")

    await eventually(is_clean)


async def untouched(cluster: Cluster) -> None:
    """Until the controller has looked at a later change and left the node as it was."""
    await cluster.client.patch(NODES, "a", {"spec": {"unschedulable": True}})

    async def is_cordoned() -> bool:
        taints = (await cluster.client.get(NODES, "a"))["spec"].get("taints", [])
        return [taint["key"] for taint in taints] == ["node.kubernetes.io/unschedulable"]

    await eventually(is_cordoned)
    await cluster.client.patch(NODES, "a", {"spec": {"unschedulable": None}})


def ready(node: Object) -> str:
    return str(next(c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"))


async def report(client: KubeClient, beat: str) -> None:
    """As a kubelet tells that all is well."""
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": beat}
    await client.patch(
        NODES,
        "a",
        {"status": {"conditions": [condition]}},
        subresource="status",
        strategic=True,
    )


async def renew(client: KubeClient, at: str) -> None:
    lease = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "a", "renewTime": at}}
    await client.apply(LEASES, "a", lease, namespace="kube-node-lease")
