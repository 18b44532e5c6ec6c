"""Never two leaders, whatever happens to candidates, server and links."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from casaba.kube import (
    LEASES,
    Election,
    ElectionTimes,
    KubeClient,
    LeadershipLost,
    NotFound,
)
from casaba.simulation.api_server.faults import LostAnswer, Refusal, Slowness, Weather
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.component.kube.link import Link
from tests.component.kube.test_watching import until

pytestmark = pytest.mark.timeout(30)

PATIENT = ElectionTimes(retry_period_s=0.05)
HASTY = ElectionTimes(lease_duration_s=1.0, renew_deadline_s=0.6, retry_period_s=0.05)
AT = {"namespace": "default", "name": "boss"}


@pytest.fixture
async def server(caplog: pytest.LogCaptureFixture) -> AsyncIterator[SimulatedApiServer]:
    caplog.set_level(logging.CRITICAL, "casaba.kube")
    async with SimulatedApiServer() as server:
        yield server


class Throne:
    """Notes who leads, and fails when two do."""

    def __init__(self) -> None:
        self.held_by: list[str] = []
        self.reigns: list[str] = []

    def work(self, identity: str, length_s: float | None) -> Callable[[], Awaitable[None]]:
        async def reign() -> None:
            assert not self.held_by, f"{identity} beside {self.held_by}"
            self.held_by.append(identity)
            self.reigns.append(identity)
            try:
                await (asyncio.sleep(length_s) if length_s is not None else asyncio.Event().wait())
            finally:
                self.held_by.remove(identity)

        return reign


def election(client: KubeClient, identity: str, times: ElectionTimes = PATIENT) -> Election:
    return Election(client, **AT, identity=identity, times=times)


async def candidate(client: KubeClient, identity: str, work: Callable[[], Awaitable[None]]) -> None:
    """Stands for ever."""
    while True:
        with contextlib.suppress(LeadershipLost):
            await election(client, identity, HASTY).lead(work)


async def test_the_first_leads_and_the_next_is_let_in_at_once(server: SimulatedApiServer) -> None:
    throne = Throne()
    async with KubeClient(server.admin_config()) as client:
        async with asyncio.timeout(PATIENT.lease_duration_s):  # nobody has to wait for an expiry
            async with asyncio.TaskGroup() as group:
                for identity in "abc":
                    work = throne.work(identity, 0.1)
                    group.create_task(election(client, identity).lead(work))
        lease = await client.get(LEASES, AT["name"], namespace=AT["namespace"])
    assert sorted(throne.reigns) == ["a", "b", "c"]
    assert lease.spec.holder_identity == ""
    assert lease.spec.lease_transitions == 2


async def test_a_leader_that_is_cut_off_ends_before_another_begins(
    server: SimulatedApiServer,
) -> None:
    throne = Throne()
    async with Link(server.admin_config()) as link:
        async with KubeClient(link.config) as cut_off, KubeClient(server.admin_config()) as near:
            far_one = election(cut_off, "far", HASTY)
            far = asyncio.create_task(far_one.lead(throne.work("far", None)))
            await until(lambda: throne.held_by == ["far"])
            other = asyncio.create_task(candidate(near, "near", throne.work("near", None)))
            link.cut()
            with pytest.raises(LeadershipLost, match=r"far leads no more: .*renewed in time"):
                await far
            assert throne.held_by == []
            await until(lambda: throne.held_by == ["near"])
            other.cancel()
            await asyncio.wait([other])


async def test_a_lease_that_somebody_else_took_is_given_up(server: SimulatedApiServer) -> None:
    throne = Throne()
    async with KubeClient(server.admin_config()) as client:
        leading = asyncio.create_task(election(client, "a").lead(throne.work("a", None)))
        await until(lambda: throne.held_by == ["a"])
        name, namespace = AT["name"], AT["namespace"]
        taken = {"spec": {"holderIdentity": "b"}}
        await client.patch(LEASES, name, taken, namespace=namespace)
        with pytest.raises(LeadershipLost, match="b holds it"):
            await leading
        assert throne.held_by == []
        lease = await client.get(LEASES, name, namespace=namespace)
        assert lease.spec.holder_identity == "b"


async def test_a_lease_that_was_deleted_is_made_anew(server: SimulatedApiServer) -> None:
    throne = Throne()
    async with KubeClient(server.admin_config()) as client:
        leading = asyncio.create_task(election(client, "a").lead(throne.work("a", 0.5)))
        await until(lambda: throne.held_by == ["a"])
        await client.delete(LEASES, AT["name"], namespace=AT["namespace"])
        await leading
        assert await holder(client) == ""


async def holder(client: KubeClient) -> str | None:
    try:
        lease = await client.get(LEASES, AT["name"], namespace=AT["namespace"])
    except NotFound:
        return None
    return lease.spec.holder_identity


async def test_what_the_work_raises_is_raised_and_the_lease_given_back(
    server: SimulatedApiServer,
) -> None:
    async def work() -> None:
        raise ZeroDivisionError

    async with KubeClient(server.admin_config()) as client:
        with pytest.raises(ZeroDivisionError):
            await election(client, "a").lead(work)
        assert await holder(client) == ""


async def test_a_cancelled_leader_gives_the_lease_back(server: SimulatedApiServer) -> None:
    throne = Throne()
    async with KubeClient(server.admin_config()) as client:
        leading = asyncio.create_task(election(client, "a").lead(throne.work("a", None)))
        await until(lambda: throne.held_by == ["a"])
        leading.cancel()
        await asyncio.wait([leading])
        assert leading.cancelled()
        assert (throne.held_by, await holder(client)) == ([], "")


@pytest.mark.parametrize("seed", [1, 2])
async def test_never_two_in_bad_weather(server: SimulatedApiServer, seed: int) -> None:
    """Links are cut and mended in turn while the server refuses, is slow and loses answers."""
    throne = Throne()
    chances = (
        (0.1, Refusal(code=503)),
        (0.1, Refusal(code=409)),
        (0.1, LostAnswer(done=True)),
        (0.05, LostAnswer()),
        (0.1, Slowness(delay_s=0.3)),
    )
    async with contextlib.AsyncExitStack() as stack:
        links = [await stack.enter_async_context(Link(server.admin_config())) for _ in range(3)]
        clients = [await stack.enter_async_context(KubeClient(link.config)) for link in links]
        server.faults.storm(Weather(seed=seed, chances=chances))
        tasks = [
            asyncio.create_task(candidate(client, name, throne.work(name, None)))
            for name, client in zip("abc", clients, strict=True)
        ]
        for step in range(6):
            link = links[(step * seed) % 3]
            link.cut()
            await asyncio.sleep(0.45)
            link.mend()
        server.faults.clear()
        await until(lambda: len(throne.held_by) == 1)
        for task in tasks:
            task.cancel()
        done, _ = await asyncio.wait(tasks)
    assert all(task.cancelled() for task in done), [t for t in done if not t.cancelled()]
    assert throne.reigns


def test_times_that_can_not_work_are_refused() -> None:
    with pytest.raises(ValueError, match="each time must be shorter"):
        ElectionTimes(lease_duration_s=5, renew_deadline_s=5)
