"""Events: what `kubectl describe` shows people about an object (core/v1 Event).

Telling one never waits and never fails: what can't be sent is dropped after some tries, and that
is logged.
"""

import asyncio
import logging
import os
import time
from collections import deque
from datetime import UTC, datetime
from typing import Any, Literal

from casaba.aiokit import Backoff
from casaba.kube.client import KubeClient
from casaba.kube.errors import KubeError, NotFound, Refused, ServerError, TooManyRequests
from casaba.kube.event_correlation import About, EventCorrelator, Happening, Told
from casaba.kube.resources import EVENTS

log = logging.getLogger(__name__)

QUEUE_LIMIT = 1000
"""Events that wait to be sent; more are dropped, so that a lost server costs no memory."""

TRIES = 6
FIRST_RETRY_S = 0.5
LAST_RETRY_S = 10.0

MAX_MESSAGE_CHARS = 1024
MAX_NAME_CHARS = 253


class EventRecorder:
    """Tells what happens to objects. `run` sends, and has to run meanwhile."""

    def __init__(
        self,
        client: KubeClient,
        *,
        component: str,
        instance: str | None = None,
        host: str = "",
        backoff: Backoff | None = None,
    ) -> None:
        self._client = client
        self._component = component
        self._instance = instance or f"{component}-{os.uname().nodename}"
        self._source = {"component": component} | ({"host": host} if host else {})
        self._correlator = EventCorrelator()
        self._waiting: deque[Happening] = deque()
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._backoff = backoff or Backoff(first_s=FIRST_RETRY_S, limit_s=LAST_RETRY_S)
        self.dropped = 0
        """Events that were never sent."""

    def record(
        self,
        about: About,
        *,
        type: Literal["Normal", "Warning"] = "Normal",
        reason: str,
        message: str,
    ) -> None:
        """Something happened; call it in the event loop's thread. `reason` is one CamelWord."""
        if len(self._waiting) >= QUEUE_LIMIT:
            self._drop("too many wait")
            return
        at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        message = message[:MAX_MESSAGE_CHARS]
        happening = Happening(about=about, type=type, reason=reason, message=message, at=at)
        self._waiting.append(happening)
        self._idle.clear()
        self._news.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            if not self._waiting:
                self._idle.set()
                self._news.clear()
                await self._news.wait()
            happening = self._waiting.popleft()
            now_s = asyncio.get_running_loop().time()
            if told := self._correlator.correlated(happening, now_s):
                await self._send(told)

    async def sent(self) -> None:
        """Wait until all that was recorded is sent or dropped; for the end of a program."""
        await self._idle.wait()

    async def _send(self, told: Told) -> None:
        self._backoff.reset()
        for tries_left in reversed(range(TRIES)):
            try:
                await self._write(told)
            except KubeError as error:
                if not tries_left or not _may_pass(error):
                    self._drop(str(error))
                    return
                await asyncio.sleep(self._backoff.next_delay_s())
            else:
                return

    async def _write(self, told: Told) -> None:
        namespace = told.happening.about.namespace or "default"
        if told.name:
            counted = {
                "count": told.count,
                "lastTimestamp": told.last_at,
                "message": told.happening.message,
            }
            try:
                await self._client.patch(EVENTS, told.name, counted, namespace=namespace)
                return
            except NotFound:  # the server forgets events after an hour
                told.name = ""
        name = _name(told.happening.about.name)
        await self._client.create(EVENTS, self._event(told, name, namespace), namespace=namespace)
        told.name = name

    def _event(self, told: Told, name: str, namespace: str) -> dict[str, Any]:
        happening, about = told.happening, told.happening.about
        return {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "type": happening.type,
            "reason": happening.reason,
            "message": happening.message,
            "source": self._source,
            "firstTimestamp": happening.at,
            "lastTimestamp": told.last_at,
            "count": told.count,
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }

    def _drop(self, why: str) -> None:
        self.dropped += 1
        log.warning("event.dropped", extra={"error": why, "dropped": self.dropped})


def _name(object_name: str) -> str:
    """`<object>.<hex of the time>`, as long as a name may be: lists are in the order of names."""
    unique = f"{time.time_ns():016x}"
    return f"{object_name[: MAX_NAME_CHARS - 1 - len(unique)].rstrip('.-')}.{unique}"


def _may_pass(error: KubeError) -> bool:
    return not isinstance(error, Refused) or isinstance(error, ServerError | TooManyRequests)
