"""Blocking calls that may hang: one at a time, in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class NoAnswer(Exception):
    """A blocking call is not over in time, or an earlier one is not over yet."""


class LoneCall:
    """Makes one blocking call at a time; one that hangs costs its own thread and no other.

    The default executor's few threads are everybody's: a driver that hangs would take them all,
    one for each time that it is asked. The thread is a daemon, so it holds up no exit either.
    """

    def __init__(self, name: str) -> None:
        """`name`: the thread's."""
        self._name = name
        self._open: Future[Any] | None = None

    async def ask(self, call: Callable[[], T], timeout_s: float | None = None) -> T:
        """What `call` returns or raises; without a timeout it is waited for as long as it takes.

        Raises NoAnswer after the timeout, and at once while an earlier call is not over. What
        comes later than anybody waits for is dropped.
        """
        if self._open is not None and not self._open.done():
            raise NoAnswer(f"{self._name} was asked before and has not answered yet")
        answer: Future[T] = Future()
        self._open = answer
        answer.set_running_or_notify_cancel()  # from here on nobody can cancel it
        threading.Thread(target=_answer, args=(call, answer), name=self._name, daemon=True).start()
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.wrap_future(answer)
        except TimeoutError:
            if answer.done() and answer.exception() is not None:
                raise  # the call's own
            raise NoAnswer(f"{self._name} has not answered within {timeout_s:g} s") from None


def _answer(call: Callable[[], T], answer: Future[T]) -> None:
    try:
        answer.set_result(call())
    except BaseException as error:  # it is the asker's
        answer.set_exception(error)
