"""Scheduler and controllers while much goes wrong: nothing is given twice, nothing is forgotten."""

from collections.abc import AsyncIterator

import pytest

from casaba.kube import KubeClient
from casaba.simulation.api_server.faults import (
    LostEvents,
    Target,
    Weather,
)
from casaba.simulation.api_server.server import SimulatedApiServer
from casaba.simulation.controllers import SimulatedControllers
from casaba.simulation.scheduler import SimulatedScheduler
from tests.component.simulation.scheduling import (
    KUBELESS,
    Cluster,
    device_class,
    eventually,
    pod,
    running,
    template,
    templated,
)
from tests.component.simulation.storm import (
    ACTIONS,
    CARD_GIB,
    CHANCES,
    STORM_PROOF,
    STORMY,
    Storm,
    stormy_config,
)


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
