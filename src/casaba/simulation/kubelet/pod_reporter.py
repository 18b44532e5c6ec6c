"""Brings a pod's status to the API server: the newest one, as soon as it can be written."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from casaba.aiokit import Backoff
from casaba.kube import PODS, Conflict, Invalid, KubeClient, KubeError, NotFound

log = logging.getLogger(__name__)

_PODS = PODS.decoded_as(dict)

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 5.0


class PodReporter:
    """Writes the status of one pod whenever it is another than the last one written."""

    def __init__(
        self, client: KubeClient, metadata: Mapping[str, Any], status: Callable[[], dict[str, Any]]
    ) -> None:
        self._client = client
        self._metadata = metadata
        self._status = status
        self._written: dict[str, Any] | None = None
        self._news = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()

    def note_change(self) -> None:
        """The status may be another one now."""
        self._settled.clear()
        self._news.set()

    async def settled(self) -> None:
        """Until the server has the newest status, or the pod is gone."""
        await self._settled.wait()

    async def run(self) -> None:
        """Never returns. If cancelled: the newest status may not have been written."""
        backoff = Backoff(first_s=FIRST_RETRY_S, limit_s=LAST_RETRY_S)
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._write(self._status())
            except KubeError as error:
                log.warning(
                    "pod.status_not_written",
                    extra={"pod": self._metadata["name"], "reason": str(error)},
                )
                await asyncio.sleep(backoff.next_delay_s())
                self._news.set()
                continue
            backoff.reset()
            if not self._news.is_set():
                self._settled.set()

    async def _write(self, status: dict[str, Any]) -> None:
        if status == self._written:
            return
        try:
            await self._client.patch(
                _PODS,
                self._metadata["name"],
                {"status": status},
                namespace=self._metadata["namespace"],
                subresource="status",
                strategic=True,
                uid=self._metadata["uid"],
            )
        except (NotFound, Conflict):
            log.debug("pod.gone", extra={"pod": self._metadata["name"]})
        except Invalid as error:
            log.error(
                "pod.status_refused", extra={"pod": self._metadata["name"], "reason": str(error)}
            )
        self._written = status
