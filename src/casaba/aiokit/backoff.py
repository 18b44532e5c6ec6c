"""How long to wait before the next try."""

import random
from collections.abc import Callable


class Backoff:
    """Delays that double up to a limit, jittered so that many clients do not come back at once.

    Each delay lies between half of its nominal length and the whole of it. `reset` after
    something worked.
    """

    def __init__(
        self, *, first_s: float, limit_s: float, jitter: Callable[[], float] = random.random
    ) -> None:
        self._first_s = first_s
        self._limit_s = limit_s
        self._jitter = jitter
        self._nominal_s = first_s

    def next_delay_s(self) -> float:
        """Seconds to wait now; the next delay is twice as long, up to the limit."""
        nominal_s = self._nominal_s
        self._nominal_s = min(2 * nominal_s, self._limit_s)
        return nominal_s * (0.5 + 0.5 * self._jitter())

    def reset(self) -> None:
        """Start over from the first delay."""
        self._nominal_s = self._first_s
