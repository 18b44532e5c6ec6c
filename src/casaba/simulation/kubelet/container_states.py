"""How far a container has come, and how a pod's status tells it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

NEVER_STARTED_AT = "1970-01-01T00:00:00Z"
LOST_EXIT_CODE = 137
START_ERROR_EXIT_CODE = 128


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Not started, or not again yet."""

    reason: str = "ContainerCreating"
    message: str = ""

    def status(self) -> dict[str, Any]:
        """The entry of a container's state."""
        told = {"reason": self.reason} | ({"message": self.message} if self.message else {})
        return {"waiting": told}


@dataclass(frozen=True, kw_only=True)
class Running:
    """Its first process lives."""

    started_at: str
    container_id: str

    def status(self) -> dict[str, Any]:
        """The entry of a container's state."""
        return {"running": {"startedAt": self.started_at}}


@dataclass(frozen=True, kw_only=True)
class Terminated:
    """Its first process has ended, or could not start."""

    exit_code: int
    reason: str
    started_at: str
    finished_at: str
    container_id: str
    message: str = ""

    def status(self) -> dict[str, Any]:
        """The entry of a container's state."""
        told = {
            "exitCode": self.exit_code,
            "reason": self.reason,
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
            "containerID": self.container_id,
        }
        return {"terminated": told | ({"message": self.message} if self.message else {})}


State = Waiting | Running | Terminated


def exit_reason(exit_code: int) -> str:
    """The word for an end."""
    return "Error" if exit_code else "Completed"


@dataclass(frozen=True, kw_only=True)
class ContainerState:
    """One container of a pod, over all its runs."""

    name: str
    image: str
    state: State = Waiting()
    last: Terminated | None = None
    restarts: int = 0

    def now(self, state: State) -> "ContainerState":
        """The next state; an end that is followed by something becomes the last one."""
        last = self.state if isinstance(self.state, Terminated) else self.last
        return replace(self, state=state, last=last)

    @property
    def exit_code(self) -> int | None:
        """How it ended, if it has."""
        return self.state.exit_code if isinstance(self.state, Terminated) else None

    def status(self, *, ready: bool, resources: list[dict[str, Any]]) -> dict[str, Any]:
        """The entry of containerStatuses."""
        running = isinstance(self.state, Running)
        told: dict[str, Any] = {
            "name": self.name,
            "state": self.state.status(),
            "lastState": self.last.status() if self.last else {},
            "ready": ready,
            "started": running,
            "restartCount": self.restarts,
            "image": self.image,
            "imageID": "",
        }
        if self.container_id:
            told["containerID"] = self.container_id
        if resources:
            told["allocatedResourcesStatus"] = resources
        return told

    @property
    def container_id(self) -> str:
        """Of the run that is told of; empty before the first."""
        if isinstance(self.state, Waiting):
            return self.last.container_id if self.last else ""
        return self.state.container_id


def restored(name: str, image: str, status: Mapping[str, Any] | None, now: str) -> ContainerState:
    """A container as an earlier kubelet left it; one that ran then is lost by now."""
    if not status:
        return ContainerState(name=name, image=image)
    state = status.get("state") or {}
    known = ContainerState(
        name=name,
        image=image,
        last=_ended((status.get("lastState") or {}).get("terminated")),
        restarts=status.get("restartCount", 0),
    )
    if running := state.get("running"):
        return replace(known, state=_lost(running["startedAt"], status.get("containerID", ""), now))
    return replace(known, state=_ended(state.get("terminated")) or Waiting())


def lost(state: ContainerState, now: str) -> Terminated:
    """The end of a container that nobody saw end, or that never ran."""
    current = state.state
    started_at = current.started_at if isinstance(current, Running) else NEVER_STARTED_AT
    return _lost(started_at, state.container_id, now)


def _lost(started_at: str, container_id: str, now: str) -> Terminated:
    return Terminated(
        exit_code=LOST_EXIT_CODE,
        reason="ContainerStatusUnknown",
        message="The container could not be located when the pod was terminated",
        started_at=started_at,
        finished_at=now,
        container_id=container_id,
    )


def _ended(told: Mapping[str, Any] | None) -> Terminated | None:
    if told is None:
        return None
    return Terminated(
        exit_code=told["exitCode"],
        reason=told.get("reason", ""),
        message=told.get("message", ""),
        started_at=told.get("startedAt", ""),
        finished_at=told.get("finishedAt", ""),
        container_id=told.get("containerID", ""),
    )
