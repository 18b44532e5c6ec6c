"""A cluster whose scheduler and controllers hear little, late, or twice."""

import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Collection
from dataclasses import replace

from casaba.kube import KubeClient, KubeConfig
from casaba.model.quantity import parse
from casaba.simulation.api_server.faults import (
    CutStream,
    Fault,
    LostAnswer,
    Refusal,
    Slowness,
    Target,
)
from casaba.simulation.api_server.server import SimulatedApiServer
from casaba.simulation.scheduler import SchedulerSettings, SimulatedScheduler
from tests.component.simulation.scheduling import (
    CLAIMS,
    FAST,
    PODS,
    Cluster,
    Object,
    claim,
    device_class,
    eventually,
    named,
    pod,
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
