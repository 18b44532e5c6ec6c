"""Which events are told anew, which are counted up, and which are one too many. Pure.

Source: client-go's event correlator: equal events are counted, many similar ones become one that
says so, and each object has a budget of events that refills slowly.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

REMEMBERED = 4096
"""Objects, reasons and messages that are remembered; the ones not heard of for longest go."""

SIMILAR_AT_MOST = 10
SIMILAR_WITHIN_S = 600.0
"""More different messages of one reason than this, within this time, become one event."""

BURST = 25.0
REFILL_PER_S = 1 / 300
"""Events of one object that are sent at once, and how fast more may come."""

COMBINED = "(combined from similar events): "


@dataclass(frozen=True, kw_only=True)
class About:
    """The object that an event is about; a UID lets `kubectl describe` find it."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


@dataclass(frozen=True, kw_only=True)
class Happening:
    """One thing that happened."""

    about: About
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    at: str
    """When, as RFC 3339."""


@dataclass
class Told:
    """An event that was told, and how often its like has happened."""

    happening: Happening
    """The first of them, with the last's message."""

    last_at: str
    count: int = 0
    name: str = ""
    """Its object's name, once that exists."""


@dataclass
class _Budget:
    at_s: float
    events: float = BURST


@dataclass
class _Similar:
    last_s: float
    messages: set[str] = field(default_factory=set)


class EventCorrelator:
    """Remembers what was told; `now_s` is of any clock that only goes forward."""

    def __init__(self) -> None:
        self._told = _Memory[tuple[About, str, str, str], Told]()
        self._similar = _Memory[tuple[About, str, str], _Similar]()
        self._budgets = _Memory[About, _Budget]()

    def correlated(self, happening: Happening, now_s: float) -> Told | None:
        """What to tell of it: a new event, or one told before whose count went up; None: nothing.

        As long as the `name` of what is returned is empty, it has to be created. What is not
        told is counted all the same.
        """
        combined = self._has_too_many_like(happening, now_s)
        message = COMBINED + happening.message if combined else happening.message
        key = (
            happening.about,
            happening.type,
            happening.reason,
            COMBINED if combined else message,
        )
        told = self._told.get(key) or Told(happening, happening.at)
        told.happening = replace(told.happening, message=message)
        told.count += 1
        told.last_at = happening.at
        self._told.put(key, told)
        return told if self._spend(happening.about, now_s) else None

    def _has_too_many_like(self, happening: Happening, now_s: float) -> bool:
        key = (happening.about, happening.type, happening.reason)
        similar = self._similar.get(key)
        if similar is None or now_s - similar.last_s > SIMILAR_WITHIN_S:
            similar = _Similar(now_s)
        similar.last_s = now_s
        if len(similar.messages) <= SIMILAR_AT_MOST:
            similar.messages.add(happening.message)
        self._similar.put(key, similar)
        return len(similar.messages) > SIMILAR_AT_MOST

    def _spend(self, about: About, now_s: float) -> bool:
        budget = self._budgets.get(about) or _Budget(now_s)
        refilled = budget.events + (now_s - budget.at_s) * REFILL_PER_S
        budget.events, budget.at_s = min(BURST, refilled), now_s
        self._budgets.put(about, budget)
        if budget.events < 1:
            return False
        budget.events -= 1
        return True


class _Memory(Generic[K, V]):
    """A dict that forgets what was put there longest ago."""

    def __init__(self) -> None:
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > REMEMBERED:
            self._values.popitem(last=False)
