"""One pod from its arrival to its end, in the order of a real kubelet.

    volumes ─► claims prepared ─► init containers ─► containers ─► all done, or deletion asked
      │                                                                      │
      └── tried again on a back-off          containers ended ─► claims unprepared ─► told

Containers end with the kubelet: to end a simulated kubelet is to switch the node off. Probes,
lifecycle hooks and resource limits are not simulated; a running container counts as ready.
"""

import asyncio
import logging
import shutil
from asyncio import TaskGroup
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from casaba.errors import CasabaError
from casaba.kube import PODS, Conflict, KubeError, NotFound
from casaba.simulation.kubelet.container_loop import stopped_within
from casaba.simulation.kubelet.node_services import NodeServices
from casaba.simulation.kubelet.pod_containers import PodContainers
from casaba.simulation.kubelet.pod_reporter import PodReporter
from casaba.simulation.kubelet.pod_status import phase_of, pod_status
from casaba.simulation.kubelet.restarts import final_phase
from casaba.simulation.kubelet.times import now

log = logging.getLogger(__name__)

_PODS = PODS.decoded_as(dict)

GIVE_BACK_RETRY_S = 2.0
"""At most, between two tries to unprepare; a change of the pod is a reason to try, too."""

DELETE_RETRY_S = 1.0
FINAL_PHASES = ("Succeeded", "Failed")

Object = Mapping[str, Any]


class PodWorker:
    """Runs one pod; a pod of the same name with another UID has another worker."""

    def __init__(self, pod: Object, node: NodeServices) -> None:
        self.pod = pod
        self._node = node
        self._folder = node.settings.root / "pods" / pod["metadata"]["uid"]
        self._stopping = asyncio.Event()
        self._vanished = asyncio.Event()
        self._edited = asyncio.Event()
        self._has_sandbox = False
        told = pod.get("status") or {}
        self._started_at = told.get("startTime") or now()
        self._final_phase = told["phase"] if told.get("phase") in FINAL_PHASES else ""
        self._reporter = PodReporter(node.client, pod["metadata"], self._status)
        self.containers = PodContainers(
            pod, node, self._folder, self._stopping, self._reporter.note_change
        )
        self.update(pod)

    def update(self, pod: Object) -> None:
        """The pod's newest state on the server."""
        if _told(pod) != _told(self.pod):
            self._edited.set()
        self.pod = pod
        self.containers.update(pod)
        if pod["metadata"].get("deletionTimestamp"):
            self._stopping.set()

    def vanish(self) -> None:
        """The pod is gone from the server, with or without our doing."""
        self._vanished.set()
        self._stopping.set()
        self._edited.set()

    def note_change(self) -> None:
        """Something that the status tells may have changed."""
        self._reporter.note_change()

    async def run(self) -> None:
        """Until the pod is gone from the server. If cancelled: its processes have been killed."""
        try:
            async with TaskGroup() as group:
                reporting = group.create_task(self._reporter.run())
                if not self._final_phase:
                    self.note_change()
                    await self._live()
                await self._give_back()
                await self._tell_end()
                await self._leave()
                reporting.cancel()
        finally:
            self.containers.remove_logs()
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _live(self) -> None:
        """Until all containers are done, or the pod is to end and they have been stopped."""
        if self.containers.are_done or not await self._achieved(self._mount, "FailedMount", ""):
            return
        prefix = "Failed to prepare dynamic resources: prepare dynamic resources: "
        if not await self._achieved(self._prepare, "FailedPrepareDynamicResources", prefix):
            return
        self._has_sandbox = True
        self.note_change()
        await self.containers.run()

    async def _achieved(
        self, attempt: Callable[[], Coroutine[Any, Any, None]], reason: str, prefix: str
    ) -> bool:
        """Try it until it works; False if the pod is to end. A driver at work is waited for."""
        while not self._stopping.is_set():
            self._edited.clear()
            try:
                await attempt()
            except CasabaError as error:
                message = f"{prefix}{error}"
                self._node.events.about_pod(self.pod, "Warning", reason, message)
            else:
                return not self._stopping.is_set()
            await stopped_within(self._edited, self._node.settings.retry_s)
        return False

    async def _mount(self) -> None:
        await self.containers.orders.check_volumes(self.pod, isolated=self._node.isolated)

    async def _prepare(self) -> None:
        if self.pod["spec"].get("resourceClaims"):
            await self._node.claims.prepare(self.pod)

    async def _give_back(self) -> None:
        """Unprepare, in the end; the pod is not told to be over before."""
        while True:
            self._edited.clear()
            try:
                await self._node.claims.unprepare(self.pod["metadata"]["uid"])
            except CasabaError as error:
                name = self.pod["metadata"]["name"]
                log.warning("pod.not_unprepared", extra={"pod": name, "reason": str(error)})
                retry_s = min(self._node.settings.retry_s, GIVE_BACK_RETRY_S)
                await stopped_within(self._edited, retry_s)
            else:
                return

    async def _tell_end(self) -> None:
        """Until the server knows the final phase."""
        if not self._final_phase:
            self.containers.give_up()
            self._final_phase = final_phase(self.containers.exit_codes())
            self.note_change()
        await self._reporter.settled()

    async def _leave(self) -> None:
        """Once deletion is asked for, delete the pod's object for good; until it is gone."""
        await self._stopping.wait()
        while not self._vanished.is_set() and not await self._is_let_go():
            await stopped_within(self._vanished, DELETE_RETRY_S)
        await self._vanished.wait()

    async def _is_let_go(self) -> bool:
        """Whether the server has taken the deletion; finalizers may still keep the object."""
        metadata = self.pod["metadata"]
        try:
            await self._node.client.delete(
                _PODS,
                metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                grace_period_s=0,
            )
        except (NotFound, Conflict):
            self._vanished.set()
        except KubeError as error:
            log.warning("pod.not_deleted", extra={"pod": metadata["name"], "reason": str(error)})
            return False
        return True

    def _status(self) -> dict[str, Any]:
        main = [loop.state for loop in self.containers.main]
        return pod_status(
            self.pod,
            phase=self._final_phase or phase_of(main),
            init=[loop.state for loop in self.containers.init],
            containers=main,
            has_sandbox=self._has_sandbox,
            started_at=self._started_at,
            resources=self._resources,
            now=now(),
        )

    def _resources(self, container: str) -> list[dict[str, Any]]:
        """`allocatedResourcesStatus` of a container."""
        loop = self.containers.loop(container)
        uses = self._node.claims.uses(self.pod, loop.container) if loop else ()
        return self._node.healths.statuses(uses)


def _told(pod: Object) -> tuple[Any, ...]:
    """What a kubelet looks at again when it changes: all but the status, which it wrote."""
    metadata = pod["metadata"]
    keys = ("annotations", "labels", "deletionTimestamp", "deletionGracePeriodSeconds")
    return (pod["spec"], *(metadata.get(key) for key in keys))
