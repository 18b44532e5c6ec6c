"""The containers of one pod: first the init containers in order, then the others side by side.

Whoever asks for the end gets it: SIGTERM, the pod's grace period, SIGKILL.
"""

import asyncio
from asyncio import TaskGroup
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from casaba.simulation.kubelet.container_loop import ContainerContext, ContainerLoop
from casaba.simulation.kubelet.container_orders import ContainerOrders
from casaba.simulation.kubelet.container_states import Waiting, lost, restored
from casaba.simulation.kubelet.logs import ContainerLog
from casaba.simulation.kubelet.node_services import NodeServices
from casaba.simulation.kubelet.restarts import After, CrashBackOff, after_end, after_init_end
from casaba.simulation.kubelet.times import now

DEFAULT_GRACE_S = 30
KILL_AGAIN_S = 1.0

Object = Mapping[str, Any]


class PodContainers:
    """All containers of a pod; `stopping` asks them to end, `changed` hears of every change."""

    def __init__(
        self,
        pod: Object,
        node: NodeServices,
        folder: Path,
        stopping: asyncio.Event,
        changed: Callable[[], None],
    ) -> None:
        self._pod = pod
        self._node = node
        self._folder = folder
        self._stopping = stopping
        self._tell_change = changed
        self._sidecars_stopping = asyncio.Event()
        self._news = asyncio.Event()
        self.orders = ContainerOrders(node.client, node.claims, node.settings, folder)
        self.init = _loops(pod, "initContainers", "initContainerStatuses")
        self.main = _loops(pod, "containers", "containerStatuses")
        for loop in self.main:
            if self.init and loop.state.state == Waiting():
                loop.state = replace(loop.state, state=Waiting(reason="PodInitializing"))

    def __iter__(self) -> Iterator[ContainerLoop]:
        yield from self.init
        yield from self.main

    def loop(self, name: str) -> ContainerLoop | None:
        """A container by name."""
        return next((loop for loop in self if loop.container["name"] == name), None)

    def update(self, pod: Object) -> None:
        """The pod's newest state on the server; its grace period may be another one now."""
        self._pod = pod
        self._news.set()

    @property
    def are_done(self) -> bool:
        """Whether all have ended and nothing follows."""
        return all(loop.is_done(self._after_end) for loop in self.main)

    def exit_codes(self) -> list[int]:
        """How those ended that make the pod a success or a failure."""
        counting = [loop for loop in self if not _is_sidecar(loop)]
        return [loop.state.exit_code or 0 for loop in counting]

    def give_up(self) -> None:
        """The pod is over: what never ran, or was lost, has ended too."""
        for loop in self:
            if loop.state.exit_code is None:
                loop.state = replace(loop.state, state=lost(loop.state, now()))

    def remove_logs(self) -> None:
        """Delete all logs."""
        for loop in self:
            loop.remove_logs()

    async def run(self) -> None:
        """Until all are done, or stopped. If cancelled: their processes have been killed."""
        async with TaskGroup() as group:
            stopper = group.create_task(self._stop_when_asked())
            if await self._run_init(group):
                async with TaskGroup() as running:
                    for loop in self.main:
                        running.create_task(loop.run(self._context(loop, self._after_end)))
            if not self._sidecars_stopping.is_set():
                self._sidecars_stopping.set()
                group.create_task(self._stop(list(filter(_is_sidecar, self.init))))
            stopper.cancel()

    async def _run_init(self, group: TaskGroup) -> bool:
        """Run the init containers; whether the others may start."""
        for loop in self.init:
            if _is_sidecar(loop):
                group.create_task(loop.run(self._context(loop, lambda _: After.RESTART)))
                continue
            await loop.run(self._context(loop, self._after_init_end))
            if self._stopping.is_set() or loop.state.exit_code != 0:
                return False
        return True

    def _after_end(self, exit_code: int) -> After:
        return after_end(self._restart_policy, exit_code)

    def _after_init_end(self, exit_code: int) -> After:
        return after_init_end(self._restart_policy, exit_code)

    @property
    def _restart_policy(self) -> str:
        return str(self._pod["spec"].get("restartPolicy") or "Always")

    def _context(self, loop: ContainerLoop, follow_up: Callable[[int], After]) -> ContainerContext:
        settings = self._node.settings
        say = self._voice(loop)
        metadata = self._pod["metadata"]
        return ContainerContext(
            make_order=lambda: self.orders.order(
                self._pod, loop.container, isolated=self._node.isolated, say=say
            ),
            open_log=lambda number: self._log(loop.container["name"], number),
            follow_up=follow_up,
            backoff=CrashBackOff(
                first_s=settings.crash_backoff_s, limit_s=settings.crash_backoff_limit_s
            ),
            stopping=self._sidecars_stopping if _is_sidecar(loop) else self._stopping,
            changed=self._note_change,
            say=say,
            pod_title=f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})",
        )

    def _voice(self, loop: ContainerLoop) -> Callable[[str, str, str], None]:
        """What records the events of a container."""
        field = "initContainers" if loop in self.init else "containers"
        path = f"spec.{field}{{{loop.container['name']}}}"

        def say(kind: str, reason: str, message: str) -> None:
            self._node.events.about_pod(self._pod, kind, reason, message, field=path)

        return say

    def _log(self, container: str, number: int) -> ContainerLog:
        path = self._folder / "logs" / container / f"{number}.log"
        return ContainerLog(path, self._node.settings.log_file_bytes)

    def _note_change(self) -> None:
        self._news.set()
        self._tell_change()

    async def _stop_when_asked(self) -> None:
        await self._stopping.wait()
        self._sidecars_stopping.set()
        await self._stop(list(self))

    async def _stop(self, loops: list[ContainerLoop]) -> None:
        """Returns once none of them runs."""
        running = [loop for loop in loops if loop.is_running]
        for loop in running:
            name = loop.container["name"]
            self._voice(loop)("Normal", "Killing", f"Stopping container {name}")
            loop.send("SIGTERM")
        await self._grace_over(running)
        while any(loop.is_running for loop in loops):
            for loop in loops:
                loop.send("SIGKILL")
            await self._news_within(KILL_AGAIN_S)

    async def _grace_over(self, loops: list[ContainerLoop]) -> None:
        """Until none of them runs, or the grace period, which can get shorter, is over."""
        clock = asyncio.get_running_loop()
        started_s = clock.time()
        while any(loop.is_running for loop in loops):
            left_s = started_s + self._grace_s() - clock.time()
            if left_s <= 0 or not await self._news_within(left_s):
                return

    async def _news_within(self, limit_s: float) -> bool:
        """Whether a container or the pod's object changes in time."""
        self._news.clear()
        try:
            async with asyncio.timeout(limit_s):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _grace_s(self) -> int:
        """Seconds between SIGTERM and SIGKILL; a pod removed by force gets one."""
        asked = self._pod["metadata"].get("deletionGracePeriodSeconds")
        default = self._pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
        return max(1, int(default if asked is None else asked))


def _is_sidecar(loop: ContainerLoop) -> bool:
    """An init container that is not waited for (KEP-753)."""
    return bool(loop.container.get("restartPolicy") == "Always")


def _loops(pod: Object, field: str, statuses: str) -> list[ContainerLoop]:
    """A loop for each container of a field, going on from what an earlier kubelet told."""
    told = {entry["name"]: entry for entry in (pod.get("status") or {}).get(statuses) or ()}
    return [
        ContainerLoop(one, restored(one["name"], one["image"], told.get(one["name"]), now()))
        for one in pod["spec"].get(field) or ()
    ]
