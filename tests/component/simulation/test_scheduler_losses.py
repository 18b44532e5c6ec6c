"""What one loss does to the scheduler and the controllers: a write unheard, refused or too late."""

import asyncio
import contextlib
from dataclasses import replace
from functools import partial

from casaba.kube import Invalid, KubeClient
from casaba.simulation.api_server.faults import (
    LostAnswer,
    LostEvents,
    Refusal,
    Slowness,
)
from casaba.simulation.api_server.server import SimulatedApiServer
from casaba.simulation.controllers import SimulatedControllers
from casaba.simulation.scheduler import SimulatedScheduler
from tests.component.simulation.scheduling import (
    CLAIMS,
    FAST,
    KUBELESS,
    NODES,
    PODS,
    Cluster,
    Object,
    claim,
    device_class,
    eventually,
    first_card_of,
    named,
    pod,
    running,
    template,
    templated,
)
from tests.component.simulation.storm import (
    CARD_GIB,
    HELD_UP,
    STORM_PROOF,
    meets,
    pools_of,
    stormy_config,
    stormy_to,
    two_nodes,
)


async def test_a_claim_that_was_given_back_unheard_is_not_taken_for_held() -> None:
    async with (
        SimulatedApiServer() as server,
        KubeClient(server.admin_config()) as client,
        KubeClient(stormy_config(server), patience_s=0) as stormy,
        asyncio.TaskGroup() as others,
    ):
        cluster = Cluster(client)
        await cluster.add_node("a", devices=1, memory=f"{CARD_GIB}Gi")
        await cluster.create(device_class(), claim("one", memory="1Gi"))
        bindings = stormy_to("create", "pods", "binding")

        async def deallocate() -> None:
            with contextlib.suppress(Invalid):  # it is held again already
                await cluster.deallocate("one")

        def lose_that_it_is_given_back() -> None:
            lost = LostAnswer(done=True, then=lambda: others.create_task(deallocate()))
            server.faults.add(lost, stormy_to("patch", "resourceclaims", "status"))
            server.faults.add(Slowness(delay_s=0.5), bindings)

        server.faults.add(LostAnswer(done=False, then=lose_that_it_is_given_back), bindings)
        server.faults.add(LostEvents(count=100), stormy_to("watch", "resourceclaims"))
        async with running(SimulatedScheduler(stormy, FAST).run, SimulatedControllers(client).run):
            await cluster.create(pod("user", named("one")))
            await cluster.node_of("user")
            assert "allocation" in (await cluster.claim("one"))["status"]
        assert server.faults.met == 4


async def a_pod_between_its_claims(cluster: Cluster) -> Object:
    """It holds one on node a, but the other is held by somebody else on b.

    Returns the other as it will be when it is free.
    """
    await cluster.create(claim("mine"), claim("theirs"))
    await cluster.create(pod("user", named("mine", "first"), named("theirs", "second")))
    await cluster.allocate("mine", "a")
    await cluster.allocate("theirs", "b")
    uid = (await cluster.pod("user"))["metadata"]["uid"]
    await cluster.reserve("mine", {"resource": "pods", "name": "user", "uid": uid})
    await cluster.reserve(
        "theirs", {"apiGroup": "example.com", "resource": "owners", "name": "they", "uid": "they"}
    )
    return {**await cluster.claim("theirs"), "status": {}}


async def test_a_claim_that_was_taken_from_its_pod_unheard_is_not_taken_for_held() -> None:
    async with two_nodes(cards=2) as (server, cluster, scheduler):
        freed = await a_pod_between_its_claims(cluster)
        lost = LostAnswer(done=True, then=lambda: server.seed([freed]))
        server.faults.add(lost, stormy_to("patch", "resourceclaims", "status"))
        server.faults.add(LostEvents(count=1), stormy_to("watch", "resourceclaims"))
        async with running(scheduler.run):
            node = await cluster.node_of("user")
        assert await pools_of(cluster, "mine", "theirs") == {node}
        assert server.faults.met == 2


async def test_a_pod_is_not_tried_again_while_a_claim_is_taken_from_it() -> None:
    async with two_nodes(cards=2) as (server, cluster, scheduler):
        freed = await a_pod_between_its_claims(cluster)
        server.faults.add(HELD_UP, stormy_to("patch", "resourceclaims", "status"))
        async with running(scheduler.run):
            await meets(server, 1)
            server.seed([freed])
            node = await cluster.node_of("user")
        assert await pools_of(cluster, "mine", "theirs") == {node}


async def test_a_claim_that_moved_before_it_was_reserved_takes_its_pod_along() -> None:
    async with two_nodes() as (server, cluster, scheduler):
        await cluster.create(claim("one"), pod("user", named("one")))
        await cluster.allocate("one", "a")
        moved = {**await cluster.claim("one"), "status": {"allocation": first_card_of("b")}}
        server.faults.add(HELD_UP, stormy_to("patch", "resourceclaims", "status"))
        async with running(scheduler.run):
            await meets(server, 1)
            server.seed([moved])
            assert await cluster.node_of("user") == "b"


async def test_a_claim_made_again_under_its_name_gets_what_it_asks_itself() -> None:
    async with two_nodes() as (server, cluster, scheduler):
        await cluster.create(claim("one", memory="1Gi"), pod("user", named("one")))
        server.faults.add(HELD_UP, stormy_to("patch", "resourceclaims"))
        async with running(scheduler.run):
            await meets(server, 1)
            await cluster.client.delete(CLAIMS, "one", namespace="default")
            await cluster.create(claim("one", memory="9Gi"))
            await cluster.node_of("user")
        (result,) = (await cluster.claim("one"))["status"]["allocation"]["devices"]["results"]
        assert result["consumedCapacity"]["memory"] == "9Gi"


async def test_a_share_counts_once_while_its_pod_is_being_bound() -> None:
    async with two_nodes() as (server, cluster, scheduler):
        await cluster.create(claim("large", memory="9Gi"), claim("small", memory="6Gi"))
        server.faults.add(HELD_UP, stormy_to("create", "pods", "binding"))
        here = {"nodeSelector": {"kubernetes.io/hostname": "a"}}
        async with running(scheduler.run):
            await cluster.create(pod("first", named("large"), **here))
            await meets(server, 1)
            await cluster.create(pod("second", named("small"), **here))
            await cluster.node_of("second")


async def test_a_claim_that_could_not_be_given_back_is_given_back_at_the_next_failure() -> None:
    async with two_nodes() as (server, cluster, scheduler):
        patches = stormy_to("patch", "resourceclaims", "status")
        bindings = stormy_to("create", "pods", "binding")

        def keep_it_reserved() -> None:
            server.faults.add(Refusal(), patches)
            server.faults.add(LostAnswer(then=expect_a_patch), bindings)

        def expect_a_patch() -> None:
            server.faults.add(Slowness(delay_s=0), patches)

        server.faults.add(LostAnswer(then=keep_it_reserved), bindings)
        async with running(scheduler.run):
            await cluster.create(claim("one"), pod("user", named("one")))
            await cluster.node_of("user")
        assert server.faults.met == 4


async def test_a_try_for_a_pod_that_is_gone_says_nothing_of_the_next_of_its_name() -> None:
    async with two_nodes() as (server, cluster, scheduler), asyncio.TaskGroup() as others:
        bindings = stormy_to("create", "pods", "binding")

        async def make_another() -> None:
            await cluster.delete_pod("user")
            await cluster.create(pod("user", named("one")))

        def let_another_overtake() -> None:
            server.faults.add(HELD_UP, stormy_to("patch", "resourceclaims", "status"))
            server.faults.add(HELD_UP, bindings)
            server.faults.add(Refusal(), bindings)
            server.faults.add(Refusal(), stormy_to("patch", "pods", "status"), times=2)
            others.create_task(make_another())

        server.faults.add(LostAnswer(then=let_another_overtake), bindings)
        async with running(scheduler.run):
            await cluster.create(claim("one"), pod("user", named("one")))
            await meets(server, 4)
            await cluster.node_of("user")


async def test_a_claim_that_was_refused_to_be_taken_is_taken_at_the_next_flush() -> None:
    """Nothing else wakes the pod; the real scheduler's flush comes after 5 min."""
    async with two_nodes(settings=STORM_PROOF) as (server, cluster, scheduler):
        await cluster.create(claim("one"))
        await cluster.allocate("one", "a")
        server.faults.add(Refusal(), stormy_to("patch", "resourceclaims", "status"))
        async with running(scheduler.run):
            here = {"nodeSelector": {"kubernetes.io/hostname": "b"}}
            await cluster.create(pod("user", named("one"), **here))
            await cluster.node_of("user")
        assert await pools_of(cluster, "one") == {"b"}
        assert server.faults.met == 1


async def test_a_claim_that_was_made_unheard_is_not_made_again() -> None:
    async with (
        SimulatedApiServer() as server,
        KubeClient(server.admin_config()) as client,
        KubeClient(stormy_config(server), patience_s=0) as stormy,
    ):
        cluster = Cluster(client)
        await cluster.create(template("shares", memory="3Gi"))
        server.faults.add(LostAnswer(done=True), stormy_to("create", "resourceclaims"))
        server.faults.add(LostEvents(count=100), stormy_to("watch", "resourceclaims"))
        async with running(SimulatedControllers(stormy).run):
            await cluster.create(pod("user", templated("shares")))

            async def is_told(name: str) -> bool:
                return bool((await cluster.pod(name))["status"].get("resourceClaimStatuses"))

            await eventually(partial(is_told, "user"))
            await client.patch(
                PODS, "user", {"metadata": {"labels": {"a": "b"}}}, namespace="default"
            )
            # Pods are served in the order of their changes.
            await cluster.create(pod("next", templated("shares")))
            await eventually(partial(is_told, "next"))
        assert len(await cluster.claims()) == 2


async def test_nodes_without_kubelets_outlive_their_grace() -> None:
    impatient = replace(KUBELESS, node_grace_s=0.01)
    async with two_nodes() as (_, cluster, _):
        async with running(SimulatedControllers(cluster.client, impatient).run):
            await cluster.create(template("shares"), pod("user", templated("shares")))
            await eventually(cluster.claims)
            await asyncio.sleep(0.5)
            nodes = (await cluster.client.list(NODES)).items
        assert not [node["metadata"]["name"] for node in nodes if "taints" in node["spec"]]
