"""Events of pods and of the node, as `kubectl describe` shows them.

What is said again is counted, not said twice. An event that can't be written is lost, as always.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from casaba.kube import EVENTS, KubeClient, KubeError
from casaba.simulation.kubelet.times import now

log = logging.getLogger(__name__)

_EVENTS = EVENTS.decoded_as(dict)
_REMEMBERED = 1024
_WAITING = 1000
_MESSAGE_LENGTH = 1024

COMPONENT = "kubelet"


@dataclass
class _Said:
    """An event on the server."""

    name: str
    count: int


@dataclass(frozen=True)
class _Event:
    """One thing to say."""

    about: tuple[tuple[str, str], ...]
    type: str
    reason: str
    message: str


class EventRecorder:
    """Writes events one after the other; `run` must run."""

    def __init__(self, client: KubeClient, node: str) -> None:
        self._client = client
        self._node = node
        self._queue: asyncio.Queue[_Event] = asyncio.Queue(_WAITING)
        self._said: OrderedDict[_Event, _Said] = OrderedDict()

    def about_pod(
        self, pod: Mapping[str, Any], kind: str, reason: str, message: str, *, field: str = ""
    ) -> None:
        """Say something of a pod; `field` is that of a container, such as spec.containers{x}."""
        metadata = pod["metadata"]
        reference = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        self._say(reference | ({"fieldPath": field} if field else {}), kind, reason, message)

    def about_node(self, kind: str, reason: str, message: str) -> None:
        """Say something of the node."""
        reference = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": self._node}
        self._say(reference, kind, reason, message)

    def _say(self, about: Mapping[str, str], kind: str, reason: str, message: str) -> None:
        event = _Event(tuple(about.items()), kind, reason, message[:_MESSAGE_LENGTH])
        if self._queue.full():
            log.warning("events.lost", extra={"reason": reason})
        else:
            self._queue.put_nowait(event)

    async def run(self) -> None:
        """Never returns. If cancelled: what was not written yet is lost."""
        while True:
            event = await self._queue.get()
            try:
                await self._write(event)
            except KubeError as error:
                log.warning("event.not_written", extra={"reason": str(error)})
            finally:
                self._queue.task_done()

    async def flush(self) -> None:
        """Until everything said so far has been written, or lost."""
        await self._queue.join()

    async def _write(self, event: _Event) -> None:
        namespace = dict(event.about).get("namespace", "default")
        if said := self._said.get(event):
            said.count += 1
            patch = {"count": said.count, "lastTimestamp": now()}
            await self._client.patch(_EVENTS, said.name, patch, namespace=namespace)
            return
        body = self._body(event)
        await self._client.create(_EVENTS, body, namespace=namespace)
        self._said[event] = _Said(body["metadata"]["name"], 1)
        while len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)

    def _body(self, event: _Event) -> dict[str, Any]:
        about = dict(event.about)
        moment = now()
        return {
            "metadata": {
                "name": f"{about['name']}.{time.time_ns():x}",
                "namespace": about.get("namespace", "default"),
            },
            "involvedObject": about,
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "count": 1,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "source": {"component": COMPONENT, "host": self._node},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._node,
        }
