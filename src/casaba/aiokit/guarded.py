"""Work that must not outlive its right to be done."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_guarded(work: Coroutine[Any, Any, T], guard: Coroutine[Any, Any, None]) -> T:
    """Run `work`, and cancel it when `guard` ends first; then raise what the guard raised.

    A guard is expected to raise; one that just returns cancels the work, and that is raised.
    Both have ended when this returns, also if it is cancelled.
    """
    working, guarding = asyncio.create_task(work), asyncio.create_task(guard)
    try:
        await asyncio.wait((working, guarding), return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended_by_guard = guarding.done() and not working.done()
        await _ended(working, guarding)
    if ended_by_guard:
        guarding.result()
    return working.result()


@contextlib.asynccontextmanager
async def running_beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines beside a block, and cancel them when it ends.

    What the block raises comes out as it is. When a coroutine fails, the block is cancelled and
    that first error comes out, also as it is.
    """
    failed: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
            try:
                yield
            except BaseException as error:
                failed = error
            finally:
                for task in tasks:
                    task.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    if failed is not None:
        raise failed


async def _ended(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel tasks and wait until they are over, even if we are cancelled meanwhile."""
    for task in tasks:
        task.cancel()
    cancelled = False
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            cancelled = True
    for task in tasks:
        with contextlib.suppress(BaseException):
            task.exception()  # or the loop complains that nobody looked
    if cancelled:
        raise asyncio.CancelledError
