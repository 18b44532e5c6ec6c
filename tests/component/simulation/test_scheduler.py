"""The simulated scheduler and claim controller on the simulated API server."""

from collections.abc import AsyncIterator

import pytest

from casaba.kube import KubeClient
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.component.simulation.scheduling import (
    DRIVER,
    Cluster,
    Object,
    claim,
    control_plane,
    device_class,
    eventually,
    named,
    pod,
    template,
    templated,
)

PROTECTED = ["resource.kubernetes.io/delete-protection"]


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with SimulatedApiServer() as server:
        async with KubeClient(server.admin_config()) as client, control_plane(client):
            cluster = Cluster(client)
            await cluster.create(device_class())
            yield cluster


async def test_a_pod_with_a_claim_gets_a_node_and_a_share(cluster: Cluster) -> None:
    await cluster.add_node("a", devices=0)
    await cluster.add_node("b")
    await cluster.create(claim("one"), pod("tenant", named("one")))
    assert await cluster.node_of("tenant") == "b"
    found = await cluster.claim("one")
    assert found["metadata"]["finalizers"] == PROTECTED
    (result,) = found["status"]["allocation"]["devices"]["results"]
    assert result["consumedCapacity"] == {"cores": "10", "memory": "4Gi"}
    (user,) = found["status"]["reservedFor"]
    tenant = await cluster.pod("tenant")
    assert user == {"resource": "pods", "name": "tenant", "uid": tenant["metadata"]["uid"]}
    assert await cluster.events("tenant", "Scheduled") == [
        "Successfully assigned default/tenant to b"
    ]


async def test_two_pods_share_a_claim_and_the_last_frees_it(cluster: Cluster) -> None:
    await cluster.add_node("a")
    await cluster.add_node("b")
    await cluster.create(claim("one"), pod("first", named("one")), pod("second", named("one")))
    assert await cluster.node_of("first") == await cluster.node_of("second")
    await cluster.delete_pod("first")

    async def users() -> list[str]:
        found = (await cluster.claim("one")).get("status", {}).get("reservedFor", [])
        return [user["name"] for user in found]

    async def only_second() -> bool:
        return await users() == ["second"]

    await eventually(only_second)
    assert (await cluster.claim("one"))["status"]["allocation"]
    await cluster.finish("second")
    await eventually(lambda: is_free(cluster, "one"))


async def is_free(cluster: Cluster, name: str) -> bool:
    found = await cluster.claim(name)
    status = found.get("status", {})
    return (
        bool(found)
        and "allocation" not in status
        and not status.get("reservedFor")
        and not found["metadata"].get("finalizers")
    )


async def test_a_waiting_pod_gets_the_room_that_another_leaves(cluster: Cluster) -> None:
    await cluster.add_node("a")
    await cluster.create(claim("one", memory="10Gi"), pod("first", named("one")))
    await cluster.node_of("first")
    await cluster.create(claim("two", memory="10Gi"), pod("second", named("two")))
    assert await cluster.refusal("second") == (
        "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    (told, *_) = await cluster.events("second", "FailedScheduling")
    assert "Why: " in told
    assert "10Gi" in told
    await cluster.delete_pod("first")
    assert await cluster.node_of("second") == "a"


async def test_claims_are_made_from_templates_and_go_with_their_pods(cluster: Cluster) -> None:
    await cluster.add_node("a")
    await cluster.create(template("shares"), pod("tenant", templated("shares", "card")))
    assert await cluster.node_of("tenant") == "a"
    (made,) = await cluster.claims()
    tenant = await cluster.pod("tenant")
    assert made["metadata"]["name"].startswith("tenant-card-")
    assert made["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "card"}
    assert made["metadata"]["labels"] == {"made": "yes"}
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", tenant["metadata"]["uid"])
    assert tenant["status"]["resourceClaimStatuses"] == [
        {"name": "card", "resourceClaimName": made["metadata"]["name"]}
    ]
    await cluster.finish("tenant")
    await eventually(lambda: none_left(cluster))


async def none_left(cluster: Cluster) -> bool:
    return not await cluster.claims()


async def test_a_pod_whose_template_comes_later_starts_then(cluster: Cluster) -> None:
    await cluster.add_node("a")
    await cluster.create(pod("tenant", templated("later")))
    (told, *_) = await cluster.events("tenant", "FailedResourceClaimCreation")
    assert told == (
        'PodResourceClaim gpu: resource claim template "later": '
        'resourceclaimtemplate.resource.k8s.io "later" not found'
    )
    await cluster.create(template("later"))
    assert await cluster.node_of("tenant") == "a"


async def test_a_pod_whose_class_comes_later_starts_then(cluster: Cluster) -> None:
    await cluster.add_node("a")
    await cluster.create(claim("one", class_name="later"), pod("tenant", named("one")))
    assert "request gpu: device class later does not exist." in await cluster.refusal("tenant")
    await cluster.create(device_class("later"))
    assert await cluster.node_of("tenant") == "a"


async def test_a_pod_without_any_node_waits_for_one(cluster: Cluster) -> None:
    await cluster.create(pod("plain"))
    assert await cluster.refusal("plain") == "no nodes available to schedule pods"
    await cluster.add_node("a", devices=0)
    assert await cluster.node_of("plain") == "a"


async def test_a_selector_that_fails_at_run_time_is_told_and_tried_again(cluster: Cluster) -> None:
    await cluster.add_node("a")
    broken: Object = claim("one")
    expression = f"device.attributes['{DRIVER}'].nothing == 'x'"
    broken["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [
        {"cel": {"expression": expression}}
    ]
    await cluster.create(broken, pod("tenant", named("one")))
    assert await cluster.refusal("tenant") == (
        'running "DynamicResources" filter plugin: claim default/one: selector #0: '
        "CEL runtime error: no such key: nothing"
    )


async def test_an_unused_claim_of_another_node_is_given_back(cluster: Cluster) -> None:
    await cluster.add_node("a")
    await cluster.add_node("b")
    await cluster.create(claim("one"))
    await cluster.allocate("one", "a")
    await cluster.create(pod("tenant", named("one"), nodeSelector={"kubernetes.io/hostname": "b"}))
    assert await cluster.node_of("tenant") == "b"
    (told, *_) = await cluster.events("tenant", "FailedScheduling")
    assert told.startswith(
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "1 resourceclaim not available on the node. deallocation of ResourceClaim completed, "
    )
    assert "one has devices of another node than b" in told


async def test_a_claim_in_use_keeps_its_next_pods_on_its_node(cluster: Cluster) -> None:
    await cluster.add_node("a")
    await cluster.add_node("b")
    await cluster.create(claim("one"), pod("first", named("one")))
    node = await cluster.node_of("first")
    other = {"nodeSelector": {"kubernetes.io/hostname": "b" if node == "a" else "a"}}
    await cluster.create(pod("second", named("one"), **other))
    assert "resourceclaim not available on the node. still not" in await cluster.refusal("second")
    await cluster.delete_pod("first")
    assert await cluster.node_of("second") != node
