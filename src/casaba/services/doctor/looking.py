"""Looks at one thing: whatever goes wrong becomes the reason why it was not seen."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from casaba.errors import CasabaError
from casaba.kube import ServerError, Unreachable
from casaba.policy.diagnosis import Unanswered, Unseen

log = logging.getLogger(__name__)

T = TypeVar("T")


async def seen(look: Coroutine[Any, Any, T], limit_s: float) -> T | Unseen:
    """What a coroutine sees within a time limit."""
    try:
        async with asyncio.timeout(limit_s):
            return await look
    except TimeoutError:
        return Unanswered(f"no answer within {limit_s:g} s")
    except (Unreachable, ServerError) as error:
        return Unanswered(str(error))
    except CasabaError as error:
        return Unseen(str(error))
    except OSError as error:
        return Unseen(f"{error.filename or 'the system'}: {error.strerror or error}")
    except Exception as error:  # one thing that is odd must not hide the others
        log.debug("doctor.not_seen", exc_info=True)
        return Unseen(f"{type(error).__name__}: {error}")


async def aside(look: Callable[[], T]) -> T:
    """What a blocking function returns; one that hangs, as a sick driver does, is left alone."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        try:
            result = look()
        except BaseException as error:  # raised again where it is awaited
            _tell(loop, done, lambda caught=error: done.set_exception(caught))  # type: ignore[misc]
        else:
            _tell(loop, done, lambda: done.set_result(result))

    threading.Thread(target=work, daemon=True).start()
    return await done


def _tell(
    loop: asyncio.AbstractEventLoop, done: "asyncio.Future[Any]", tell: Callable[[], None]
) -> None:
    def unless_given_up() -> None:
        if not done.done():
            tell()

    try:
        loop.call_soon_threadsafe(unless_given_up)
    except RuntimeError:
        return  # the loop is closed: nobody waits any more
