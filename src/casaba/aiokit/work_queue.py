"""Keys that need work: each is worked on by one at a time, and again if it changed meanwhile."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from casaba.aiokit.backoff import Backoff
from casaba.errors import CasabaError

K = TypeVar("K", bound=Hashable)

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.005
LAST_RETRY_S = 60.0

OVERTAKEN_LIMIT_S = 1.0
"""Work that is overtaken until its back-off is as long as this does not just have bad luck."""


class QueueClosed(Exception):
    """The queue was shut down and all its keys have been handed out."""


class WorkQueue(Generic[K]):
    """A queue of keys in which equal ones are one.

        waiting ──get──► in work ──done──► forgotten
           ▲                │
           └──── again ◄────┘  if it was added while in work

    A key says only *that* something has to be looked at: whoever gets it reads the present state.
    Every key that was added is handed out after that, whatever else happens.
    """

    def __init__(
        self,
        *,
        first_retry_s: float = FIRST_RETRY_S,
        last_retry_s: float = LAST_RETRY_S,
        overtaken: tuple[type[Exception], ...] = (),
    ) -> None:
        """`overtaken` are errors of work that only say that what it had read is old.

        They count as failures only if they go on.
        """
        self._first_retry_s = first_retry_s
        self._last_retry_s = last_retry_s
        self._overtaken = overtaken
        self._order: deque[K] = deque()
        self._waiting: set[K] = set()
        self._in_work: set[K] = set()
        self._later: dict[K, asyncio.TimerHandle] = {}
        self._backoffs: dict[K, Backoff] = {}
        self._news = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self.closed = False
        """Whether `shut_down` was called; keys that are added after it are not taken."""

    @property
    def unfinished(self) -> frozenset[K]:
        """Keys that wait, now or for later, or are in work."""
        return frozenset(self._waiting | self._in_work | self._later.keys())

    def add(self, key: K) -> None:
        """The key needs work now."""
        if self.closed or key in self._waiting:
            return
        self._waiting.add(key)
        if key not in self._in_work:
            self._enqueue(key)

    def add_after(self, key: K, delay_s: float) -> None:
        """The key needs work in `delay_s`; of several such times the earliest counts."""
        if delay_s <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        earlier = self._later.get(key)
        if self.closed or (earlier and earlier.when() <= loop.time() + delay_s):
            return
        if earlier:
            earlier.cancel()
        self._later[key] = loop.call_later(delay_s, self._add_due, key)

    def retry(self, key: K) -> float:
        """Work on the key failed: it comes again after its back-off, which is returned in s."""
        backoff = self._backoffs.setdefault(
            key, Backoff(first_s=self._first_retry_s, limit_s=self._last_retry_s)
        )
        delay_s = backoff.next_delay_s()
        self.add_after(key, delay_s)
        return delay_s

    def reset(self, key: K) -> None:
        """Work on the key succeeded: its next back-off starts from the shortest."""
        self._backoffs.pop(key, None)

    async def get(self) -> K:
        """The next key, to be given back by `done`; raises QueueClosed.

        If cancelled: no key is taken.
        """
        while not self._order:
            if self.closed:
                raise QueueClosed
            self._news.clear()
            await self._news.wait()
        key = self._order.popleft()
        self._waiting.remove(key)
        self._in_work.add(key)
        return key

    def done(self, key: K) -> None:
        """Work on the key has ended, well or badly; raises KeyError if it was not in work."""
        self._in_work.remove(key)
        if key in self._waiting:
            self._enqueue(key)
        elif not self._in_work and not self._waiting:
            self._drained.set()

    @asynccontextmanager
    async def next_key(self) -> AsyncIterator[K]:
        """`get` and `done` around a block; raises QueueClosed."""
        key = await self.get()
        try:
            yield key
        finally:
            self.done(key)

    async def serve(
        self, work: Callable[[K], Awaitable[float | None]], *, workers: int = 1
    ) -> None:
        """Work on the keys until the queue is shut down and empty.

        `work` returns None, or in how many seconds the key is to come again. If it raises, that
        is logged and the key comes again after its back-off. If cancelled: keys in work wait again.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._serve_one_by_one(work))

    def shut_down(self) -> None:
        """Take no more keys; those that wait now are still handed out, those for later are not."""
        self.closed = True
        for timer in self._later.values():
            timer.cancel()
        self._later.clear()
        self._news.set()

    async def drained(self) -> None:
        """Wait until no key waits or is in work; keys for later don't count."""
        await self._drained.wait()

    async def _serve_one_by_one(self, work: Callable[[K], Awaitable[float | None]]) -> None:
        try:
            while True:
                async with self.next_key() as key:
                    await self._worked(work, key)
        except QueueClosed:
            return

    async def _worked(self, work: Callable[[K], Awaitable[float | None]], key: K) -> None:
        try:
            again_in_s = await work(key)
        except asyncio.CancelledError:
            self._waiting.add(key)  # `done` puts it back in line
            raise
        except Exception as error:  # one key must not stop the others
            delay_s = self.retry(key)
            is_news = isinstance(error, self._overtaken) and delay_s < OVERTAKEN_LIMIT_S
            _log_error(key, error, delay_s, is_news=is_news)
            return
        self.reset(key)
        if again_in_s is not None:
            self.add_after(key, again_in_s)

    def _enqueue(self, key: K) -> None:
        self._drained.clear()
        self._order.append(key)
        self._news.set()

    def _add_due(self, key: K) -> None:
        del self._later[key]
        self.add(key)


def _log_error(key: Hashable, error: Exception, delay_s: float, *, is_news: bool) -> None:
    expected = isinstance(error, CasabaError)
    failed = logging.WARNING if expected else logging.ERROR
    log.log(
        logging.DEBUG if is_news else failed,
        "work.overtaken" if is_news else "work.failed",
        exc_info=not expected,
        extra={"key": str(key), "error": str(error), "retry_in_s": round(delay_s, 3)},
    )
