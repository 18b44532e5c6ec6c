"""The scheduler's loop: take a pod, decide, carry it out beside the next one."""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from casaba.aiokit.locks import KeyedLocks
from casaba.kube import EventRecorder, KubeClient, ObjectKey
from casaba.simulation.scheduler.binding import Binder, NotBound
from casaba.simulation.scheduler.decision import (
    Decision,
    Failed,
    NotReady,
    Placed,
    Unschedulable,
    decide,
)
from casaba.simulation.scheduler.news import News
from casaba.simulation.scheduler.queue import (
    FIRST_BACKOFF_S,
    FLUSH_S,
    LAST_BACKOFF_S,
    SchedulingQueue,
)
from casaba.simulation.scheduler.reports import PodReports
from casaba.simulation.scheduler.state import SchedulerState
from casaba.simulation.workloads.objects import Pod
from casaba.simulation.workloads.times import utc_now

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SchedulerSettings:
    """How patient the scheduler is; the defaults are the real one's."""

    first_backoff_s: float = FIRST_BACKOFF_S
    """Wait after the first failure of a pod, in seconds; doubles with each."""
    last_backoff_s: float = LAST_BACKOFF_S
    """The longest wait after a failure, in seconds."""
    flush_s: float = FLUSH_S
    """When a waiting pod is looked at again without any news, in seconds."""
    new_share_id: Callable[[], str] = field(default=lambda: str(uuid.uuid4()))
    """Makes the id of one share of a device."""


class SimulatedScheduler:
    """Gives nodes and devices to pods, as kube-scheduler with its default plugins does.

    No preemption, no scoring beyond "fewest pods, then by name", no extended resources by DRA.
    """

    def __init__(self, client: KubeClient, settings: SchedulerSettings | None = None) -> None:
        self._client = client
        self._settings = settings or SchedulerSettings()
        self._queue = SchedulingQueue(
            time.monotonic,
            first_backoff_s=self._settings.first_backoff_s,
            last_backoff_s=self._settings.last_backoff_s,
            flush_s=self._settings.flush_s,
        )
        self._state = SchedulerState(client, self._queue)
        self._binder = Binder(client, self._state, timestamp=utc_now)
        self._events = EventRecorder(client, component="default-scheduler")
        self._reports = PodReports(client, self._events, timestamp=utc_now)
        self._locks = KeyedLocks[ObjectKey]()
        """What is told of one pod is told in order."""

    async def run(self) -> None:
        """Never returns. If cancelled: placements on their way are finished or lost."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._events.run())
            group.create_task(self._state.run())
            await self._state.synced()
            await self._schedule(group)

    async def _schedule(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._state.news.clear()
            key = self._queue.pop()
            if key is None:
                await self._something_due()
            else:
                self._work_on(key, group)
                await asyncio.sleep(0)

    async def _something_due(self) -> None:
        due_s = self._queue.next_due_s()
        delay_s = None if due_s is None else max(0.0, due_s - time.monotonic())
        try:
            async with asyncio.timeout(delay_s):
                await self._state.news.wait()
        except TimeoutError:
            return

    def _work_on(self, key: ObjectKey, group: asyncio.TaskGroup) -> None:
        pod = self._state.pod(key)
        if pod is None:
            self._queue.remove(key)
            return
        match self._decision(pod):
            case Placed() as placed:
                self._binder.reserve(pod, placed)
                group.create_task(self._carry_out(key, pod, placed))
            case NotReady() as waiting:
                self._queue.wait_for(key, waiting.cures)
                if not waiting.is_usual:
                    self._reports.not_ready(pod, waiting.message)
            case Unschedulable() as refused:
                group.create_task(self._refuse(key, pod, refused))
            case Failed(message=message):
                self._queue.retry(key)
                group.create_task(self._fail(key, pod, message))

    def _decision(self, pod: Pod) -> Decision:
        try:
            return decide(pod, self._state.view(), new_share_id=self._settings.new_share_id)
        except Exception as error:  # an object that nobody thought of must not stop the others
            log.exception("pod.not_decided", extra={"pod": pod.metadata.name})
            return Failed(message=f"the scheduler can't decide about this pod: {error}")

    async def _carry_out(self, key: ObjectKey, pod: Pod, placed: Placed) -> None:
        async with self._locks.of(key):
            try:
                await self._binder.bind(pod, placed)
            except NotBound as error:
                self._give_up(key, pod)
                await self._reports.failed(pod, str(error))
            except Exception as error:  # as in _decision
                log.exception("pod.not_bound", extra={"pod": pod.metadata.name})
                self._give_up(key, pod)
                await self._reports.failed(pod, f"the scheduler can't bind this pod: {error}")
            else:  # the watch will take it from the queue
                self._reports.scheduled(pod, placed.node)

    def _give_up(self, key: ObjectKey, pod: Pod) -> None:
        """Its room may be just what others wait for."""
        self._state.placed.pop(pod.metadata.uid, None)
        if self._is_still_there(key, pod):
            self._queue.retry(key)
        for news in (News.POD_GONE, News.CLAIM_FREED):
            self._state.tell(news)

    async def _refuse(self, key: ObjectKey, pod: Pod, refused: Unschedulable) -> None:
        async with self._locks.of(key):
            if refused.deallocate:  # before the pod's next try, which would count on the devices
                await self._binder.deallocate(refused.deallocate)
            if self._is_still_there(key, pod):
                self._queue.wait_for(key, refused.cures)
                self._state.news.set()
            await self._reports.unschedulable(pod, refused.message, refused.why)

    def _is_still_there(self, key: ObjectKey, pod: Pod) -> bool:
        """Whether the queue means this pod by the name, not one that was made after it."""
        now = self._state.pod(key)
        return now is not None and now.metadata.uid == pod.metadata.uid

    async def _fail(self, key: ObjectKey, pod: Pod, message: str) -> None:
        async with self._locks.of(key):
            await self._reports.failed(pod, message)
