"""Where decisions are worked out: small ones at once, large ones in a thread, one by one."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Workbench:
    """Use as `async with Workbench(…) as bench`.

    One thread, since two would only share one interpreter, and hold two large objects at once.
    """

    def __init__(self, *, aside_above_bytes: int) -> None:
        self._aside_above_bytes = aside_above_bytes
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large-review")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def work(
        self, size_bytes: int, function: Callable[P, T], *args: P.args, **named: P.kwargs
    ) -> T:
        """The result of a pure function about something so large.

        If cancelled while it waits for its turn, it is not done; if later, its result is lost.
        """
        if size_bytes <= self._aside_above_bytes:
            return function(*args, **named)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: function(*args, **named))
