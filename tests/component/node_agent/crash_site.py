"""A whole simulated node whose agent dies again and again, and what must hold all the same."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from casaba.cli.demo_objects import apply_file
from casaba.kube import PODS, RESOURCE_CLAIMS, KubeClient
from casaba.settings.host_paths import DRIVER_NAME, HostPaths
from casaba.simulation.api_server import SimulatedApiServer
from casaba.simulation.cluster import AGENT_USER
from casaba.simulation.controllers import SimulatedControllers
from casaba.simulation.gpu_node import GpuNode, GpuNodeSettings
from casaba.simulation.kubelet import SimulatedKubelet
from casaba.simulation.scheduler import SimulatedScheduler
from tests.component.node_agent.agents import KILLED, Agent, Moment, Nursery, nursery
from tests.native.simulated_driver.host import DRIVER

NODE = "crash-1"
LIMIT_S = 30.0
_CLUSTER_FILES = ("cluster/deviceclass.yaml", "cluster/node-agent-rbac.yaml")
_PODS, _CLAIMS = PODS.decoded_as(dict), RESOURCE_CLAIMS.decoded_as(dict)

Object = dict[str, Any]


@dataclass
class CrashSite:
    """One node. Whenever its agent has been killed, the next one starts, with the next doom."""

    server: SimulatedApiServer
    client: KubeClient
    node: GpuNode
    _nursery: Nursery
    agent: Agent | None = None
    dooms: deque[Moment | None] = field(default_factory=deque)
    """When the coming agents are to die; None, or no entry: not by themselves."""
    deaths: int = 0
    before_start: Callable[[], None] = lambda: None
    """Called before each agent starts."""
    failure: str = ""
    extra: dict[str, str] = field(default_factory=dict)
    """More environment of the coming agents."""

    @property
    def paths(self) -> HostPaths:
        return self.node.paths

    async def keep_an_agent(self) -> None:
        """Returns, with the `failure` noted, only when an agent ends by itself."""
        while True:
            self.before_start()
            moment = self.dooms.popleft() if self.dooms else None
            doom = moment.environment() if moment else {}
            environment = {**self.node.environment(), **self.extra, **doom}
            self.agent = await self._nursery.start(self.node.agent_flags(), environment)
            try:
                status = await asyncio.shield(self.agent.ended)
            finally:
                self.agent.kill()
            if status != KILLED:
                self.failure = f"an agent ended with {status}: {self.agent.log.read_text()}"
                return
            self.deaths += 1

    def said(self, event: str) -> bool:
        """Whether the agent that runs now has a line of that name in its log."""
        return self.agent is not None and self.agent.said(event)

    def kill_agent(self) -> None:
        """SIGKILL the one that runs now."""
        if self.agent is not None:
            self.agent.kill()

    async def next_agent_serves(self, deaths: int) -> None:
        """Until so many have died and the one after them is registered."""

        def serves() -> bool:
            assert self.deaths <= deaths, f"{self.deaths} died instead of {deaths}"
            return self.deaths == deaths and self._is_registered()

        def died(number: int) -> bool:
            return self.deaths > number

        for number in range(self.deaths, deaths):
            await self.until(f"agent {number} has died", partial(died, number))
        await self.until(f"{deaths} agents have died and one serves", serves)

    async def current_agent_serves(self) -> None:
        """Until whichever agent runs is registered."""
        await self.until("an agent serves", self._is_registered)

    def _is_registered(self) -> bool:
        agent = self.agent
        return agent is not None and not agent.ended.done() and agent.said("kubelet.registered")

    async def add(self, name: str, *shares: tuple[str, int], claims: int = 1) -> None:
        """A pod with claims of its own, each for (memory, cores) shares of the card."""
        names = [f"{name}-{number}" for number in range(claims)]
        for claim in names:
            await self.client.create(_CLAIMS, _claim(claim, shares), namespace="default")
        await self.client.create(_PODS, _pod(name, names), namespace="default")

    async def remove(self, name: str) -> None:
        """Ask for the end of a pod and its claims; they go in time."""
        claims = [claim["metadata"]["name"] for claim in self.claims_of(name)]
        await self.client.delete(_PODS, name, namespace="default", grace_period_s=1)
        for claim in claims:
            await self.client.delete(_CLAIMS, claim, namespace="default")

    def objects(self, plural: str) -> list[Object]:
        """What the server has."""
        return list(self.server.objects(plural))

    def claims_of(self, pod: str) -> list[Object]:
        """The claims of a pod."""
        claims = self.objects("resourceclaims")
        return [one for one in claims if one["metadata"]["name"].rpartition("-")[0] == pod]

    def running(self) -> set[str]:
        """Names of the pods that run."""
        pods = self.objects("pods")
        return {pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"}

    def slices(self) -> list[Object]:
        """The specs of the node's slices."""
        return [found["spec"] for found in self.objects("resourceslices")]

    async def has_only(self, *pods: str) -> None:
        """Until these pods run, and of others there is nothing any more."""

        def settled() -> bool:
            existing = {pod["metadata"]["name"] for pod in self.objects("pods")}
            claims = {one["metadata"]["name"] for one in self.objects("resourceclaims")}
            owners = {name.rpartition("-")[0] for name in claims}
            return existing == self.running() == set(pods) == owners

        await self.until(f"exactly {pods} run", settled)

    async def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait for a condition; a failure tells the agent's last words."""
        try:
            async with asyncio.timeout(LIMIT_S):
                while not condition():
                    assert not self.failure, self.failure
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"not within {LIMIT_S} s: {what}\n{self._situation()}") from None

    def _situation(self) -> str:
        pods = {pod["metadata"]["name"]: pod["status"].get("phase") for pod in self.objects("pods")}
        events = [f"{one['reason']}: {one['message']}" for one in self.objects("events")][-10:]
        said = self.agent.log.read_text() if self.agent else ""
        return "\n".join([json.dumps(pods), *events, said[-3000:]])


def _claim(name: str, shares: Sequence[tuple[str, int]]) -> Object:
    requests = [
        {
            "name": f"share-{number}",
            "exactly": {
                "deviceClassName": DRIVER_NAME,
                "capacity": {"requests": {"memory": memory, "cores": str(cores)}},
            },
        }
        for number, (memory, cores) in enumerate(shares)
    ]
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}


def _pod(name: str, claims: Sequence[str]) -> Object:
    container = {
        "name": "tenant",
        "image": "registry.example/none:1",
        "command": ["sleep", "1000000"],
        "resources": {"claims": [{"name": claim} for claim in claims]},
    }
    entries = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    spec = {
        "containers": [container],
        "resourceClaims": entries,
        "terminationGracePeriodSeconds": 1,
    }
    return {"metadata": {"name": name}, "spec": spec}


@asynccontextmanager
async def crash_site(folder: Path) -> AsyncIterator[CrashSite]:
    """A node in a cluster of its own; the first agent is started by `keep_an_agent`."""
    async with (
        SimulatedApiServer() as server,
        KubeClient(server.admin_config()) as client,
        nursery(folder) as agents,
    ):
        node = GpuNode(settings=GpuNodeSettings(name=NODE), folder=folder / NODE, driver=DRIVER)
        node.create(server.kubeconfig(AGENT_USER, ()))
        for name in _CLUSTER_FILES:
            await apply_file(client, name)
        site = CrashSite(server, client, node, agents)
        async with _running(_cluster(server, client, node)):
            await site.until("the node has joined", lambda: bool(site.objects("nodes")))
            yield site


@asynccontextmanager
async def _running(loops: Sequence[Callable[[], Awaitable[None]]]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(loop()) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


def _cluster(
    server: SimulatedApiServer, client: KubeClient, node: GpuNode
) -> list[Callable[[], Awaitable[None]]]:
    settings = replace(
        node.kubelet_settings(),
        isolation="environment",
        plugin_poll_s=0.02,
        registration_retry_s=0.05,
        retry_s=0.05,
        reconcile_s=0.5,
        health_retry_s=30.0,
    )
    return [
        SimulatedScheduler(client).run,
        SimulatedControllers(client).run,
        SimulatedKubelet(client, server.authority, settings).run,
    ]


@asynccontextmanager
async def agents_kept(site: CrashSite, *dooms: Moment | None) -> AsyncIterator[None]:
    """Agents run, one after the other, until the block ends."""
    site.dooms.extend(dooms)
    async with _running([site.keep_an_agent]):
        yield
