"""A whole cluster in one process: API server, controllers, scheduler and a kubelet per node.

The node agent is not among them: that is a real service, which whoever uses this starts by itself.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from casaba.aiokit import running_beside
from casaba.errors import InvalidInput
from casaba.kube import KubeClient
from casaba.simulation.api_server import SimulatedApiServer
from casaba.simulation.controllers import SimulatedControllers
from casaba.simulation.gpu_node import GpuNode, GpuNodeSettings
from casaba.simulation.kubelet import SimulatedKubelet
from casaba.simulation.scheduler import SimulatedScheduler

AGENT_USER = "casaba-node-agent"
"""Who the node agents are; examples/cluster gives this user what they need."""


@dataclass(frozen=True)
class SimulatedCluster:
    """A running cluster."""

    server: SimulatedApiServer
    client: KubeClient
    """The administrator's."""
    nodes: tuple[GpuNode, ...]
    kubelets: tuple[SimulatedKubelet, ...]


@asynccontextmanager
async def simulated_cluster(
    folder: Path, nodes: Sequence[GpuNodeSettings], *, driver: Path
) -> AsyncIterator[SimulatedCluster]:
    """Run a cluster below a folder until the block ends; `driver` holds the stand-in driver.

    Raises CasabaError when the folder can't be used or two nodes have one name.
    """
    names = [node.name for node in nodes]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"two nodes are called {repeated[0]!r}: a node's name must be its own")
    async with SimulatedApiServer() as server, KubeClient(server.admin_config()) as client:
        hosts = tuple(
            GpuNode(settings=one, folder=folder / one.name, driver=driver) for one in nodes
        )
        for host in hosts:
            host.create(server.kubeconfig(AGENT_USER, ()))
        kubelets = tuple(_kubelet(client, server, host) for host in hosts)
        cluster = SimulatedCluster(server, client, hosts, kubelets)
        async with _running(cluster):
            yield cluster


def _kubelet(client: KubeClient, server: SimulatedApiServer, host: GpuNode) -> SimulatedKubelet:
    return SimulatedKubelet(client, server.authority, host.kubelet_settings())


@asynccontextmanager
async def _running(cluster: SimulatedCluster) -> AsyncIterator[None]:
    """All loops, until the block ends."""
    loops = [
        SimulatedScheduler(cluster.client).run,
        SimulatedControllers(cluster.client).run,
        *(kubelet.run for kubelet in cluster.kubelets),
    ]
    async with running_beside(*(loop() for loop in loops)):
        yield
