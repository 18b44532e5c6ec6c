"""One watch that is open: its stream, its age, and what it has told so far."""

import time
from collections.abc import Iterable
from typing import Generic, TypeVar

from casaba.kube.cache import Named
from casaba.kube.resources import ObjectKey
from casaba.kube.transport import ByteStream
from casaba.wire.watch_stream import WatchStream

T = TypeVar("T")

SETTLED_S = 5.0
"""A watch that lasted this long did work, even if it brought nothing."""

BOOKMARK_OVERDUE_S = 150.0
"""A server sends a bookmark about each minute. One that fell silent for this long may be behind
the version asked for, as after a restored backup, and would stay silent until it has caught up."""

INITIAL_SILENCE_S = 5.0
INITIAL_LIMIT_S = 30.0
"""A server that does not end its initial events by then does not know that it was asked to."""


class InitialEvents(Generic[T]):
    """The objects that a watch tells of before it says that these are all (KEP-3157)."""

    def __init__(self) -> None:
        self._found: dict[ObjectKey, tuple[Named, T | None]] = {}

    def put(self, identity: Named, object_: T | None) -> None:
        """An object is there; None if it is not understood."""
        self._found[ObjectKey(identity.namespace, identity.name)] = (identity, object_)

    def remove(self, identity: Named) -> None:
        """An object went while the others were told."""
        self._found.pop(ObjectKey(identity.namespace, identity.name), None)

    def complete(self) -> Iterable[tuple[Named, T | None]]:
        """All of them, as a list would have them."""
        return self._found.values()


class OpenWatch(Generic[T]):
    """A watch, and whether it has brought anything; times are of the monotonic clock."""

    def __init__(self, stream: ByteStream, initial: InitialEvents[T] | None) -> None:
        self.stream = stream
        self.lines = WatchStream()
        self.initial = initial
        """What it has told of the list that it starts with; None when that is complete."""
        self._opened_at_s = self._heard_at_s = time.monotonic()
        self._brought_news = False

    def heard(self, *, news: bool) -> None:
        """Bytes came, perhaps with whole events."""
        self._heard_at_s = time.monotonic()
        self._brought_news |= news

    @property
    def patience_s(self) -> float | None:
        """How long to wait for bytes; None: for ever."""
        if self.initial is None:
            return None
        now_s = time.monotonic()
        silence_s = self._heard_at_s + INITIAL_SILENCE_S - now_s
        return max(0.0, min(silence_s, self._opened_at_s + INITIAL_LIMIT_S - now_s))

    @property
    def worked(self) -> bool:
        """Whether another such watch may be opened at once."""
        return self._brought_news or time.monotonic() - self._opened_at_s >= SETTLED_S

    @property
    def was_silent_too_long(self) -> bool:
        """Whether the server may have lost the version that we watch from."""
        return time.monotonic() - self._heard_at_s >= BOOKMARK_OVERDUE_S
