"""What people see of a decision: the pod's PodScheduled condition, and events."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from casaba.kube import EventRecorder, KubeClient, KubeError
from casaba.simulation.workloads.objects import Pod
from casaba.simulation.workloads.references import about_pod
from casaba.simulation.workloads.writing import patch_pod_status

log = logging.getLogger(__name__)

NOTE_MAX_CHARS = 1024
"""Of an event's message (k8s.io/api, events/v1)."""


class PodReports:
    """Tells of pods; what can't be told is logged, and no decision waits for it."""

    def __init__(
        self, client: KubeClient, events: EventRecorder, *, timestamp: Callable[[], str]
    ) -> None:
        self._client = client
        self._events = events
        self._timestamp = timestamp

    def scheduled(self, pod: Pod, node: str) -> None:
        """The pod has a node."""
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        self._events.record(
            about_pod(pod),
            reason="Scheduled",
            message=f"Successfully assigned {name} to {node}",
        )

    def not_ready(self, pod: Pod, message: str) -> None:
        """The pod waits for its claims. The real scheduler keeps that to itself."""
        self._tell_failed(pod, f"waiting: {message}")

    async def unschedulable(self, pod: Pod, message: str, why: Sequence[str]) -> None:
        """No node will do; `why` is for people and only in the event."""
        self._tell_failed(pod, with_why(message, why))
        await self._condition(pod, "Unschedulable", message)

    async def failed(self, pod: Pod, message: str) -> None:
        """The attempt itself failed."""
        self._tell_failed(pod, message)
        await self._condition(pod, "SchedulerError", message)

    def _tell_failed(self, pod: Pod, note: str) -> None:
        self._events.record(
            about_pod(pod), type="Warning", reason="FailedScheduling", message=_shortened(note)
        )

    async def _condition(self, pod: Pod, reason: str, message: str) -> None:
        known = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        if known and (known.status, known.reason, known.message) == ("False", reason, message):
            return
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
        }
        if known is None or known.status != "False":
            condition["lastTransitionTime"] = self._timestamp()
        try:
            await patch_pod_status(self._client, pod, {"conditions": [condition]})
        except KubeError as error:
            log.warning(
                "pod.condition_not_written",
                extra={"pod": pod.metadata.name, "reason": str(error)},
            )


def with_why(message: str, why: Sequence[str]) -> str:
    """The scheduler's own sentence first, then what stood in the way of each device."""
    return f"{message} Why: {'; '.join(why)}" if why else message


def _shortened(note: str) -> str:
    return note if len(note) <= NOTE_MAX_CHARS else f"{note[: NOTE_MAX_CHARS - 4]} ..."
