"""The simulated kubelet from start to end."""

import logging
import shutil
from asyncio import TaskGroup

from casaba.errors import InvalidInput
from casaba.kube import KubeClient
from casaba.net.pod_resources import pod_resources_server
from casaba.node.files import make_folder
from casaba.settings.simulation import SimulatedKubeletSettings
from casaba.simulation.authority import ClusterAuthority
from casaba.simulation.kubelet.claim_states import ClaimStates
from casaba.simulation.kubelet.claims import PodClaims
from casaba.simulation.kubelet.events import EventRecorder
from casaba.simulation.kubelet.health import DeviceHealths
from casaba.simulation.kubelet.node_object import NodeObject
from casaba.simulation.kubelet.node_services import NodeServices
from casaba.simulation.kubelet.plugin_watcher import PluginWatcher
from casaba.simulation.kubelet.plugins import Plugins
from casaba.simulation.kubelet.pods import Pods
from casaba.simulation.kubelet.pods_in_use import pods_in_use
from casaba.simulation.kubelet.processes import namespaces_work
from casaba.simulation.kubelet.server import kubelet_server

log = logging.getLogger(__name__)

_ISOLATION_TOLD = {
    True: "Containers run as processes of this machine, each in a mount namespace of its own.",
    False: "Containers run as processes of this machine without namespaces (no root): what CDI "
    "mounts is a folder of links, and limits hold for programs that keep LD_PRELOAD.",
}


class SimulatedKubelet:
    """One node of a simulated cluster: registers plugins, prepares claims, runs pods.

    Its containers end with it, as if the node were switched off; the checkpoint of its claims
    stays, and the next kubelet on that root asks for everything to be prepared again.
    """

    def __init__(
        self, client: KubeClient, authority: ClusterAuthority, settings: SimulatedKubeletSettings
    ) -> None:
        self._client = client
        self._authority = authority
        self._settings = settings
        self._node = NodeObject(client, settings)
        self._events = EventRecorder(client, settings.node_name)

    async def run(self) -> None:
        """Never returns. If cancelled: all processes and sockets are gone, the Node stays.

        Raises HostError when the root directory can't be used.
        """
        settings = self._settings
        make_folder(settings.registry_dir)
        pods_folder = settings.root / "pods"
        shutil.rmtree(pods_folder, ignore_errors=True)
        make_folder(pods_folder)
        states = ClaimStates(settings.checkpoint)
        states.load()
        try:
            await self._run(states, isolated=await self._is_isolated())
        finally:
            shutil.rmtree(pods_folder, ignore_errors=True)

    async def _run(self, states: ClaimStates, *, isolated: bool) -> None:
        settings = self._settings
        plugins = Plugins(self._node.wipe_slices, settings.wiping_delay_s)
        healths = DeviceHealths(settings, lambda: pods.note_health())
        plugins.watch = healths.watch
        claims = PodClaims(self._client, plugins, states, settings)
        pods = Pods(
            NodeServices(
                client=self._client,
                settings=settings,
                claims=claims,
                healths=healths,
                events=self._events,
                isolated=isolated,
            )
        )
        watcher = PluginWatcher(
            settings.registry_dir,
            plugins,
            poll_s=settings.plugin_poll_s,
            retry_s=settings.registration_retry_s,
        )
        async with (
            kubelet_server(pods, self._authority, settings.node_name) as port,
            pod_resources_server(settings.pod_resources_socket, lambda: pods_in_use(pods, claims)),
            TaskGroup() as group,
        ):
            group.create_task(plugins.run())
            group.create_task(self._events.run())
            await self._node.register(port, "namespace" if isolated else "environment")
            self._events.about_node("Normal", "Starting", "Starting kubelet.")
            self._events.about_node("Normal", "Simulated", _ISOLATION_TOLD[isolated])
            group.create_task(self._node.keep_alive())
            group.create_task(self._node.wipe_slices())
            group.create_task(watcher.run())
            group.create_task(pods.run())

    async def _is_isolated(self) -> bool:
        """Whether containers get namespaces; raises InvalidInput when they must, and can't."""
        settings = self._settings
        if settings.isolation == "environment":
            return False
        works = await namespaces_work(settings.root / "pods")
        if not works and settings.isolation == "namespace":
            raise InvalidInput(
                "isolation 'namespace' needs root and the right to mount (CAP_SYS_ADMIN); "
                "use 'auto' or 'environment'"
            )
        return works
