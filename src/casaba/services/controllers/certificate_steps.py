"""What those have in common who keep certificates by one step after the other."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import NoReturn

from casaba.aiokit import Backoff
from casaba.errors import InvalidInput
from casaba.kube import KubeError
from casaba.policy.certificates import Step, Wait
from casaba.services.controllers.certificate_store import WebhookEntry

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 30.0


async def keep(step: Callable[[], Awaitable[Step]], check_s: float) -> NoReturn:
    """Do steps for ever; what fails with KubeError or InvalidInput is told and tried again.

    A wait is cut off after `check_s`; the more steps in a row, the later is the next.
    """
    backoff = Backoff(first_s=FIRST_RETRY_S, limit_s=LAST_RETRY_S)
    while True:
        wait_s = await _stepped(step, backoff)
        await asyncio.sleep(min(wait_s, check_s))


async def _stepped(step: Callable[[], Awaitable[Step]], backoff: Backoff) -> float:
    """Do a step; in how many seconds to look again."""
    try:
        done = await step()
    except (KubeError, InvalidInput) as error:
        delay_s = backoff.next_delay_s()
        told = {"reason": str(error), "retry_in_s": round(delay_s, 2)}
        log.warning("certificates.not_kept", extra=told)
        return delay_s
    if not isinstance(done, Wait):
        return backoff.next_delay_s()
    backoff.reset()
    return done.seconds


def chosen(entries: Iterable[WebhookEntry], keys: Collection[str]) -> list[WebhookEntry]:
    """Those that a step names."""
    return [entry for entry in entries if entry.key in keys]


class Unchanged:
    """How long things have been seen as they are."""

    def __init__(self, monotonic_s: Callable[[], float] | None = None) -> None:
        """`monotonic_s`: the loop's clock, if none is given."""
        self._monotonic_s = monotonic_s or asyncio.get_running_loop().time
        self._since: dict[str, tuple[object, float]] = {}

    def for_s(self, what: str, value: object) -> float:
        """Seconds since a thing was first seen with this value, without another in between."""
        now_s = self._monotonic_s()
        known, since_s = self._since.get(what, (None, now_s))
        if known != value:
            since_s = now_s
        self._since[what] = (value, since_s)
        return now_s - since_s

    def forget(self) -> None:
        """Others may have been at it meanwhile."""
        self._since.clear()
