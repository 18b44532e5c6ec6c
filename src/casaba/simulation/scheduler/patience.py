"""Reads that must be answered before anything else can be decided."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from casaba.aiokit import Backoff
from casaba.kube import KubeError, NotFound

T = TypeVar("T")

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.05
LAST_RETRY_S = 5.0


async def until_answered(read: Callable[[], Awaitable[T]]) -> T | None:
    """What the server says, however long it takes; None if there is no such object."""
    backoff = Backoff(first_s=FIRST_RETRY_S, limit_s=LAST_RETRY_S)
    while True:
        try:
            return await read()
        except NotFound:
            return None
        except KubeError as error:
            delay_s = backoff.next_delay_s()
            log.warning("scheduler.read_again", extra={"reason": str(error)})
            await asyncio.sleep(delay_s)
