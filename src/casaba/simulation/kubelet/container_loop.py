"""One container of a pod: started, started again, stopped.

    waiting ──► running ──► terminated ──► done
       ▲                        │
       └── CrashLoopBackOff ◄───┘ as the pod's restart policy says

Source: Kubernetes documentation, Pod Lifecycle.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any

from casaba.errors import CasabaError
from casaba.simulation.kubelet.container_plan import ContainerNotCreatable
from casaba.simulation.kubelet.container_states import (
    NEVER_STARTED_AT,
    START_ERROR_EXIT_CODE,
    ContainerState,
    Running,
    Terminated,
    Waiting,
    exit_reason,
)
from casaba.simulation.kubelet.container_words import ContainerNotConfigurable
from casaba.simulation.kubelet.image_names import InvalidImageName
from casaba.simulation.kubelet.logs import ContainerLog
from casaba.simulation.kubelet.processes import (
    ContainerProcess,
    ProcessOrder,
    StartFailed,
    run_container,
)
from casaba.simulation.kubelet.restarts import After, CrashBackOff
from casaba.simulation.kubelet.times import now

CREATE_RETRY_S = 10.0

_REASONS: tuple[tuple[type[CasabaError], str], ...] = (
    (ContainerNotConfigurable, "CreateContainerConfigError"),
    (ContainerNotCreatable, "CreateContainerError"),
    (InvalidImageName, "InvalidImageName"),
)


@dataclass(frozen=True, kw_only=True)
class ContainerContext:
    """What a container's loop needs of its pod."""

    make_order: Callable[[], Awaitable[ProcessOrder]]
    """Raises CasabaError when the container can't be made."""
    open_log: Callable[[int], ContainerLog]
    """The log of a run, by its number; older ones than the previous run's are removed."""
    follow_up: Callable[[int], After]
    """What comes after an exit code."""
    backoff: CrashBackOff
    stopping: asyncio.Event
    """Set once the pod is to end."""
    changed: Callable[[], None]
    say: Callable[[str, str, str], None]
    """Records an event: type, reason, message."""
    pod_title: str
    """How messages name the pod: name_namespace(uid)."""


class ContainerLoop:
    """Runs one container until it is done, or the pod is to end."""

    def __init__(self, container: Mapping[str, Any], state: ContainerState) -> None:
        self.container = container
        self.state = state
        self.log: ContainerLog | None = None
        self.previous_log: ContainerLog | None = None
        self._process: ContainerProcess | None = None
        self._crashes = 0
        self._run = state.restarts + (1 if state.exit_code is not None else 0)

    @property
    def is_running(self) -> bool:
        """Whether its program runs."""
        return self._process is not None

    def is_done(self, follow_up: Callable[[int], After]) -> bool:
        """Whether it has ended and nothing follows."""
        code = self.state.exit_code
        return code is not None and follow_up(code) is After.DONE

    def send(self, signal: str) -> None:
        """Send a signal, such as SIGTERM, if it runs."""
        if self._process is not None:
            self._process.send(signal)

    def remove_logs(self) -> None:
        """Delete its logs; for when the pod is gone."""
        for one in (self.log, self.previous_log):
            if one is not None:
                one.remove()

    async def run(self, context: ContainerContext) -> None:
        """Until the container is done, or the pod is to end. If cancelled: it has been killed."""
        if self.is_done(context.follow_up):
            return
        while not context.stopping.is_set():
            order = await self._ordered(context)
            if order is None or not await self._run_once(order, context):
                return

    async def _ordered(self, context: ContainerContext) -> ProcessOrder | None:
        """What to run, in the end; None if the pod is to end before it is known."""
        while True:
            try:
                return await context.make_order()
            except CasabaError as error:
                self._refuse(error, context)
            if await stopped_within(context.stopping, CREATE_RETRY_S):
                return None

    def _refuse(self, error: CasabaError, context: ContainerContext) -> None:
        """Tell why the container can't be made."""
        reason = next((word for kind, word in _REASONS if isinstance(error, kind)), "")
        self._enter(Waiting(reason=reason or "CreateContainerError", message=str(error)))
        told = str(error)
        if isinstance(error, InvalidImageName):
            context.say("Warning", "InspectFailed", told)
            told = reason
        context.say("Warning", "Failed", f"Error: {told}")
        context.changed()

    async def _run_once(self, order: ProcessOrder, context: ContainerContext) -> bool:
        """Run it to its end; whether it is to run again."""
        self._open_log(context)
        context.say("Normal", "Created", "Container created")
        started_s = time.monotonic()
        end = await self._end_of(order, context)
        self._enter(end)
        context.changed()
        if context.stopping.is_set() or context.follow_up(end.exit_code) is After.DONE:
            return False
        if context.backoff.has_recovered(time.monotonic() - started_s):
            self._crashes = 0
        return await self._back_off(context)

    async def _end_of(self, order: ProcessOrder, context: ContainerContext) -> Terminated:
        container_id = f"simulated://{token_hex(32)}"
        started_at = NEVER_STARTED_AT
        assert self.log is not None

        def started(process: ContainerProcess) -> None:
            nonlocal started_at
            started_at = now()
            self._process = process
            self._enter(Running(started_at=started_at, container_id=container_id))
            context.say("Normal", "Started", "Container started")
            context.changed()
            if context.stopping.is_set():
                process.send("SIGTERM")

        message = ""
        try:
            code = await run_container(order, self.log, started)
            reason = exit_reason(code)
        except StartFailed as error:
            code, reason, message = START_ERROR_EXIT_CODE, "StartError", _start_error(error)
            context.say("Warning", "Failed", f"Error: {message}")
        finally:
            self._process = None
        return Terminated(
            exit_code=code,
            reason=reason,
            message=message,
            started_at=started_at,
            finished_at=now(),
            container_id=container_id,
        )

    async def _back_off(self, context: ContainerContext) -> bool:
        """Wait as long as it must; whether it is to run again."""
        delay_s = context.backoff.delay_s(self._crashes)
        self._crashes += 1
        if delay_s > 0:
            name = self.container["name"]
            text = f"back-off {delay_s:g}s restarting failed container={name}"
            message = f"{text} pod={context.pod_title}"
            self._enter(Waiting(reason="CrashLoopBackOff", message=message))
            context.changed()
            text = f"Back-off restarting failed container {name} in pod {context.pod_title}"
            context.say("Warning", "BackOff", text)
        return not await stopped_within(context.stopping, delay_s)

    def _open_log(self, context: ContainerContext) -> None:
        if self.previous_log is not None:
            self.previous_log.remove()
        self.previous_log, self.log = self.log, context.open_log(self._run)
        self.state = replace(self.state, restarts=self._run)
        self._run += 1

    def _enter(self, state: Waiting | Running | Terminated) -> None:
        self.state = self.state.now(state)


def _start_error(error: StartFailed) -> str:
    return (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
        f"runc create failed: unable to start container process: {error}"
    )


async def stopped_within(stopping: asyncio.Event, limit_s: float) -> bool:
    """Whether the event comes, or is there, within a time."""
    try:
        async with asyncio.timeout(limit_s):
            await stopping.wait()
    except TimeoutError:
        return stopping.is_set()
    return True
