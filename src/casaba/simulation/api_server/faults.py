"""Faults on demand: what is to go wrong, for whom, and how often. A plan; http_door carries it out.

    server.faults.add(Refusal(code=429, retry_after_s=1), Target(verbs={"list"}), times=3)
    server.faults.add(CutStream(after_events=2, reset=True), Target(resources={"pods"}))

The first fault of a kind that fits is used up. Nothing goes wrong by itself. That nobody listens
is not a fault of requests: `server.stop()` and `server.start()` do that.
"""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from casaba.simulation.api_server.requests import ResourceRequest


@dataclass(frozen=True, kw_only=True)
class Slowness:
    """The answer starts later."""

    delay_s: float


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The request is answered with an error instead of being done."""

    code: int = 500
    message: str = "the simulated server was asked to fail"
    retry_after_s: int | None = None


@dataclass(frozen=True, kw_only=True)
class LostAnswer:
    """The connection is reset without an answer; the request was `done`, or not.

    A watch is never done: it is reset before it begins.
    """

    done: bool = False

    then: Callable[[], object] | None = None
    """Called at that moment, such as to end the client too."""


@dataclass(frozen=True, kw_only=True)
class CutStream:
    """A watch ends after some events: cleanly, or by a reset of its connection."""

    after_events: int = 0
    reset: bool = False


@dataclass(frozen=True, kw_only=True)
class LostEvents:
    """Changes that a watch does not get, and never learns of; the state at its start is whole."""

    count: int = 1
    after_events: int = 0
    """Of changes, too."""


Fault = Slowness | Refusal | LostAnswer | CutStream | LostEvents
F = TypeVar("F", Slowness, Refusal, LostAnswer, CutStream, LostEvents)


@dataclass(frozen=True, kw_only=True)
class Target:
    """Which requests a fault meets: an empty collection means any."""

    verbs: Collection[str] = ()
    resources: Collection[str] = ()
    """Plurals."""
    usernames: Collection[str] = ()
    subresources: Collection[str] = ()

    def __contains__(self, request: ResourceRequest) -> bool:
        return (
            (not self.verbs or request.verb in self.verbs)
            and (not self.resources or request.resource.plural in self.resources)
            and (not self.usernames or request.user.username in self.usernames)
            and (not self.subresources or request.subresource in self.subresources)
        )


ANY = Target()


@dataclass
class _Planned:
    fault: Fault
    target: Target
    times: int | None
    met: int = field(default=0)

    @property
    def is_spent(self) -> bool:
        return self.times is not None and self.met >= self.times


@dataclass(frozen=True, kw_only=True)
class Weather:
    """Faults at random: each with a chance per request, the same for the same seed."""

    seed: int
    chances: Sequence[tuple[float, Fault]]
    target: Target = ANY


class Faults:
    """The plan of one server."""

    def __init__(self) -> None:
        self._planned: list[_Planned] = []
        self._weather: Weather | None = None
        self._random = random.Random(0)
        self.met = 0
        """So many faults have happened."""

    def add(self, fault: Fault, target: Target = ANY, *, times: int | None = 1) -> None:
        """Let a fault happen to the next requests that fit; `times` None means until `clear`."""
        self._planned.append(_Planned(fault, target, times))

    def storm(self, weather: Weather) -> None:
        """Let faults happen at random until `clear`."""
        self._weather = weather
        self._random = random.Random(weather.seed)

    def clear(self) -> None:
        """Nothing goes wrong any more."""
        self._planned.clear()
        self._weather = None

    def take(self, kind: type[F], request: ResourceRequest) -> F | None:
        """The fault of a kind that a request meets now."""
        for planned in self._planned:
            if isinstance(planned.fault, kind) and request in planned.target:
                planned.met += 1
                self.met += 1
                if planned.is_spent:
                    self._planned.remove(planned)
                return planned.fault
        return self._by_chance(kind, request)

    def _by_chance(self, kind: type[F], request: ResourceRequest) -> F | None:
        weather = self._weather
        if weather is None or request not in weather.target:
            return None
        for chance, fault in weather.chances:
            if isinstance(fault, kind) and self._random.random() < chance:
                self.met += 1
                return fault
        return None
