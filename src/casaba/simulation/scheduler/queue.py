"""Pods that need a node: which one is next, and what the others wait for. Pure.

    ready ──pop──► in work ──► forgotten                    it has a node
      ▲               ├──wait_for──► waiting ──news──► ready    it fits nowhere now
      │               └──retry─────► backing off                something failed
      └──────────── time ────────────────┘

News that come while a pod is in work may have come too late for its decision, so they count as
if they came right after it. Waiting pods are looked at again after `flush_s` in any case.
"""

from collections.abc import Callable
from dataclasses import dataclass

from casaba.kube import ObjectKey
from casaba.simulation.scheduler.news import News

FIRST_BACKOFF_S = 1.0
LAST_BACKOFF_S = 10.0
FLUSH_S = 300.0
"""The three are the real scheduler's."""


@dataclass(frozen=True)
class _Waiting:
    cures: frozenset[News]
    until_s: float


class SchedulingQueue:
    """The queue; `now_s` is any clock that only goes forward."""

    def __init__(
        self,
        now_s: Callable[[], float],
        *,
        first_backoff_s: float = FIRST_BACKOFF_S,
        last_backoff_s: float = LAST_BACKOFF_S,
        flush_s: float = FLUSH_S,
    ) -> None:
        self._now_s = now_s
        self._first_backoff_s = first_backoff_s
        self._last_backoff_s = last_backoff_s
        self._flush_s = flush_s
        self._ready: dict[ObjectKey, None] = {}
        self._in_work: dict[ObjectKey, set[News]] = {}
        self._waiting: dict[ObjectKey, _Waiting] = {}
        self._backing_off: dict[ObjectKey, float] = {}
        self._failures: dict[ObjectKey, int] = {}

    def add(self, pod: ObjectKey) -> None:
        """A new pod; one that is in the queue already stays where it is."""
        if not self._knows(pod):
            self._ready[pod] = None

    def remove(self, pod: ObjectKey) -> None:
        """It needs no node any more."""
        for place in (self._ready, self._in_work, self._waiting, self._backing_off, self._failures):
            place.pop(pod, None)

    def pop(self) -> ObjectKey | None:
        """The pod to work on; None if there is nothing to do now."""
        self._move_due()
        pod = next(iter(self._ready), None)
        if pod is not None:
            del self._ready[pod]
            self._in_work[pod] = set()
        return pod

    def wait_for(self, pod: ObjectKey, cures: frozenset[News]) -> None:
        """It fits nowhere, until one of these happens."""
        missed = self._in_work.pop(pod, None)
        if missed is None:
            return
        self._failures.pop(pod, None)
        if missed & cures:
            self._ready[pod] = None
        else:
            self._waiting[pod] = _Waiting(cures, self._now_s() + self._flush_s)

    def retry(self, pod: ObjectKey) -> None:
        """Something failed that may work later: again after its back-off."""
        if self._in_work.pop(pod, None) is None:
            return
        failures = self._failures[pod] = self._failures.get(pod, 0) + 1
        delay_s = min(self._first_backoff_s * 2 ** min(failures - 1, 32), self._last_backoff_s)
        self._backing_off[pod] = self._now_s() + delay_s

    def tell(self, news: News, pod: ObjectKey | None = None) -> None:
        """Something happened, for all pods or for one."""
        for key, told in self._in_work.items():
            if pod in (None, key):
                told.add(news)
        cured = [
            key
            for key, waiting in self._waiting.items()
            if news in waiting.cures and pod in (None, key)
        ]
        self._wake(cured)

    def next_due_s(self) -> float | None:
        """When `pop` may have something that it has not now; None if only news can change that."""
        if self._ready:
            return self._now_s()
        times = [*self._backing_off.values(), *(entry.until_s for entry in self._waiting.values())]
        return min(times, default=None)

    def _knows(self, pod: ObjectKey) -> bool:
        places = (self._ready, self._in_work, self._waiting, self._backing_off)
        return any(pod in place for place in places)

    def _move_due(self) -> None:
        now_s = self._now_s()
        for pod in [pod for pod, due_s in self._backing_off.items() if due_s <= now_s]:
            del self._backing_off[pod]
            self._ready[pod] = None
        self._wake([pod for pod, entry in self._waiting.items() if entry.until_s <= now_s])

    def _wake(self, pods: list[ObjectKey]) -> None:
        for pod in pods:
            del self._waiting[pod]
            self._ready[pod] = None
