"""Scheduler and controllers while much goes wrong: nothing is given twice, nothing is forgotten."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from functools import partial

import pytest

from casaba.kube import Invalid, KubeClient, KubeConfig
from casaba.model.quantity import parse
from casaba.simulation.api_server.faults import (
    CutStream,
    Fault,
    LostAnswer,
    LostEvents,
    Refusal,
    Slowness,
    Target,
    Weather,
)
from casaba.simulation.api_server.server import SimulatedApiServer
from casaba.simulation.controllers import SimulatedControllers
from casaba.simulation.scheduler import SchedulerSettings, SimulatedScheduler
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

STORMY = "storm"
"""The user whose requests go wrong; the test's own don't."""

CARD_GIB = 16
ACTIONS = 60

CHANCES: tuple[tuple[float, Fault], ...] = (
    (0.06, Refusal(code=409)),
    (0.04, Refusal(code=429)),
    (0.04, Refusal(code=500)),
    (0.03, LostAnswer(done=True)),
    (0.03, LostAnswer(done=False)),
    (0.10, Slowness(delay_s=0.05)),
    (0.30, CutStream(after_events=5)),
    (0.20, CutStream(after_events=3, reset=True)),
)


HELD_UP = Slowness(delay_s=1.0)
"""Long enough for others to be faster."""

STORM_PROOF = replace(FAST, flush_s=2.0)
"""After some faults only the flush helps, as with the real scheduler, such as when a claim can't be
taken from a pod, or is gone before any watch has told that its devices were given back."""


class Storm:
    """A cluster whose control plane has bad luck, and a test that has not."""

    def __init__(self, server: SimulatedApiServer, cluster: Cluster, seed: int) -> None:
        self.server = server
        self.cluster = cluster
        self.random = random.Random(seed)
        self.pods: set[str] = set()
        self.claims: set[str] = set()
        self.dropped = 0

    async def act(self, number: int) -> None:
        """Something that users do."""
        await self.random.choice((self._new_pod, self._new_pod, self._end_pod, self._drop_claim))(
            str(number)
        )

    async def _new_pod(self, number: str) -> None:
        entries = [self._entry("first"), self._entry("second")][: self.random.randint(1, 2)]
        for entry in entries:
            name = entry.get("resourceClaimName")
            if name and name not in self.claims:
                await self._new_claim(name)
        made = pod(f"pod-{number}", *entries)
        await self.cluster.create(made)
        self.pods.add(f"pod-{number}")

    def _entry(self, name: str) -> Object:
        if self.random.random() < 0.5:
            return templated("shares", name)
        return named(f"claim-{self.dropped}-{self.random.randint(1, 4)}-{name}", name)

    async def _new_claim(self, name: str) -> None:
        await self.cluster.create(claim(name, memory=f"{self.random.randint(1, 9)}Gi"))
        self.claims.add(name)

    async def _end_pod(self, _: str) -> None:
        if not self.pods:
            return
        name = self.random.choice(sorted(self.pods))
        if self.random.random() < 0.5 and "nodeName" in (await self.cluster.pod(name))["spec"]:
            await self.cluster.finish(name)
        else:
            self.pods.discard(name)
            await self.cluster.delete_pod(name)

    async def _drop_claim(self, _: str) -> None:
        """Only one that nobody wants; its pods would wait for ever."""
        for name in sorted(self.claims - await self._wanted())[:1]:
            self.claims.discard(name)
            self.dropped += 1
            await self.cluster.client.delete(CLAIMS, name, namespace="default")

    async def _wanted(self) -> set[str]:
        listed = (await self.cluster.client.list(PODS, namespace="default")).items
        return {
            entry.get("resourceClaimName", "")
            for found in listed
            if found["status"]["phase"] != "Succeeded"
            for entry in found["spec"]["resourceClaims"]
        }

    async def check_shares(self) -> None:
        """No card is promised beyond what it has, and no share to two."""
        given: Counter[tuple[str, str]] = Counter()
        shares: Counter[str] = Counter()
        for found in await self.cluster.claims():
            allocation = found.get("status", {}).get("allocation") or {"devices": {"results": ()}}
            for result in allocation["devices"]["results"]:
                card = (result["pool"], result["device"])
                given[card] += parse(result["consumedCapacity"]["memory"])
                shares[result["shareID"]] += 1
        assert all(taken <= CARD_GIB << 30 for taken in given.values()), given
        assert all(times == 1 for times in shares.values()), shares

    async def all_done(self) -> bool:
        """End every pod that has its node and its claims; whether there are none left.

        A claim whose pod went between allocation and binding stays allocated, as with the real
        scheduler, until somebody uses or deletes it.
        """
        await self.check_shares()
        await self._drop_claim("")
        listed = (await self.cluster.client.list(PODS, namespace="default")).items
        waiting = [found for found in listed if found["status"]["phase"] != "Succeeded"]
        for found in waiting:
            if found["spec"].get("nodeName"):
                await self._check_claims(found)
                await self.cluster.finish(found["metadata"]["name"])
        return not waiting and not self.claims

    async def _check_claims(self, found: Object) -> None:
        """A pod with a node holds claims with devices of that node."""

        async def holds_all() -> bool:
            return all([await self._is_held(name, found) for name in claim_names(found)])

        await eventually(holds_all)

    async def _is_held(self, name: str, found: Object) -> bool:
        status = (await self.cluster.claim(name)).get("status", {})
        users = [user["uid"] for user in status.get("reservedFor", ())]
        pools = {result["pool"] for result in status["allocation"]["devices"]["results"]}
        assert pools == {found["spec"]["nodeName"]}
        return found["metadata"]["uid"] in users

    async def all_gone(self) -> bool:
        """Whether no claim is left: neither users nor protection keep any."""
        return not await self.cluster.claims()


def claim_names(found: Object) -> Collection[str]:
    made = {
        status["name"]: status["resourceClaimName"]
        for status in found["status"].get("resourceClaimStatuses", ())
    }
    entries = found["spec"]["resourceClaims"]
    return [entry.get("resourceClaimName") or made[entry["name"]] for entry in entries]


def stormy_config(server: SimulatedApiServer) -> KubeConfig:
    certificate, key = server.authority.client_certificate(STORMY, ["system:masters"])
    return replace(server.admin_config(), client_certificate_pem=certificate, client_key_pem=key)


def stormy_to(verb: str, resource: str, subresource: str = "") -> Target:
    return Target(
        usernames=(STORMY,), verbs=(verb,), resources=(resource,), subresources=(subresource,)
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


@contextlib.asynccontextmanager
async def two_nodes(
    *, cards: int = 1, settings: SchedulerSettings = FAST
) -> AsyncIterator[tuple[SimulatedApiServer, Cluster, SimulatedScheduler]]:
    """Nodes a and b, and a scheduler whose requests can go wrong; it does not run yet."""
    async with (
        SimulatedApiServer() as server,
        KubeClient(server.admin_config()) as client,
        KubeClient(stormy_config(server), patience_s=0) as stormy,
    ):
        cluster = Cluster(client)
        await cluster.create(device_class())
        for name in ("a", "b"):
            await cluster.add_node(name, devices=cards, memory=f"{CARD_GIB}Gi")
        yield server, cluster, SimulatedScheduler(stormy, settings)


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


async def pools_of(cluster: Cluster, *names: str) -> set[str]:
    return {
        result["pool"]
        for name in names
        for result in (await cluster.claim(name))["status"]["allocation"]["devices"]["results"]
    }


async def meets(server: SimulatedApiServer, count: int) -> None:
    async def has_met() -> bool:
        return server.faults.met >= count

    await eventually(has_met)


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


@pytest.fixture(params=range(3))
async def storm(request: pytest.FixtureRequest) -> AsyncIterator[Storm]:
    async with SimulatedApiServer() as server:
        async with (
            KubeClient(server.admin_config()) as client,
            KubeClient(stormy_config(server), patience_s=0) as stormy,
        ):
            cluster = Cluster(client)
            await cluster.create(device_class(), template("shares", memory="3Gi"))
            for name, devices in (("a", 1), ("b", 2)):
                await cluster.add_node(name, devices=devices, memory=f"{CARD_GIB}Gi")
            parts = SimulatedScheduler(stormy, STORM_PROOF), SimulatedControllers(stormy, KUBELESS)
            async with running(*(part.run for part in parts)):
                await all_at_work(cluster)
                yield Storm(server, cluster, request.param)


async def all_at_work(cluster: Cluster) -> None:
    """Until everybody knows the cluster: only then can what comes later be lost."""
    await cluster.create(pod("probe", templated("shares")))
    await cluster.node_of("probe")
    await cluster.delete_pod("probe")

    async def no_claims() -> bool:
        return not await cluster.claims()

    await eventually(no_claims)


async def make_every_watch_too_old(server: SimulatedApiServer) -> None:
    """Something happens, and is forgotten, while nobody can watch."""
    await server.stop()
    unseen = {"name": "unseen", "namespace": "default"}
    server.seed([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": unseen}])
    server.compact()
    await server.start()


async def test_every_pod_gets_its_share_once_and_gives_it_back(storm: Storm) -> None:
    target = Target(usernames=(STORMY,))
    weather = Weather(seed=storm.random.randint(0, 999), chances=CHANCES, target=target)
    storm.server.faults.storm(weather)
    for number in range(ACTIONS):
        await storm.act(number)
        await storm.check_shares()
    await eventually(storm.all_done)
    assert storm.server.faults.met
    storm.server.faults.clear()
    await eventually(storm.all_gone)


async def test_what_the_watches_missed_is_learnt_from_the_next_list(storm: Storm) -> None:
    lost = LostEvents(count=2, after_events=2)
    storm.server.faults.add(lost, Target(usernames=(STORMY,), verbs=("watch",)), times=None)
    await storm.server.restart()
    for number in range(ACTIONS // 2):
        await storm.act(number)
        await storm.check_shares()
    storm.server.faults.clear()
    await make_every_watch_too_old(storm.server)
    await eventually(storm.all_done)
    await eventually(storm.all_gone)
