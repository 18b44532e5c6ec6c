"""What must be remembered from one reading of the budgets to the next."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from casaba.model.usage import BudgetUsage

BudgetKey = tuple[str, str]
"""Claim UID and request."""

WINDOW_NS = 5_000_000_000
"""Utilisation is the mean since the last reading that is at least so old."""

_APART_NS = 1_000_000_000
"""Readings that are closer than this are not remembered one by one."""

_PERCENT = 100.0


@dataclass
class _Remembered:
    busy: deque[tuple[int, tuple[int, ...]]] = field(default_factory=deque)
    launches: dict[int, int] = field(default_factory=dict)
    """Of each living process, by PID."""
    ended_launches: int = 0
    percents: tuple[float | None, ...] = ()


class UsageHistory:
    """Follows the budgets of a node; `now_ns` is of any clock that only goes forward.

    A tenant can write what it likes into its own region: what is made of it stays in its range.
    """

    def __init__(self) -> None:
        self._budgets: dict[BudgetKey, _Remembered] = {}

    def observe(self, budgets: Iterable[BudgetUsage], now_ns: int) -> None:
        """Take a reading of all budgets; those that are not in it are forgotten."""
        seen = {}
        for budget in budgets:
            key = (budget.claim, budget.request)
            known = seen[key] = self._budgets.get(key) or _Remembered()
            if not budget.damaged:
                _observe_time(known, tuple(times.busy_ns for times in budget.times), now_ns)
                _observe_launches(known, budget)
        self._budgets = seen

    def card_percent(self, key: BudgetKey, card: int) -> float | None:
        """Part of a card's time that a budget used, 0 to 100.

        None where it is not known: before the second reading, unless nothing was ever charged.
        """
        known = self._budgets.get(key)
        return known.percents[card] if known and card < len(known.percents) else None

    def launches(self, key: BudgetKey) -> int:
        """Launches of living processes, and of dead ones as far as a reading saw them."""
        known = self._budgets.get(key)
        return known.ended_launches + sum(known.launches.values()) if known else 0


def _observe_time(known: _Remembered, busy_ns: tuple[int, ...], now_ns: int) -> None:
    samples = known.busy
    while len(samples) > 1 and now_ns - samples[1][0] >= WINDOW_NS:
        samples.popleft()
    if samples and now_ns > samples[0][0]:
        since_ns, before = samples[0]
        known.percents = tuple(
            min(max(_PERCENT * (now - then) / (now_ns - since_ns), 0.0), _PERCENT)
            for now, then in zip(busy_ns, before, strict=False)
        )
    elif not samples:
        known.percents = tuple(None if busy else 0.0 for busy in busy_ns)
    if not samples or now_ns - samples[-1][0] >= _APART_NS:
        samples.append((now_ns, busy_ns))


def _observe_launches(known: _Remembered, budget: BudgetUsage) -> None:
    living = {process.pid: process.launches for process in budget.processes}
    for pid, launches in known.launches.items():
        if living.get(pid, -1) < launches:  # it ended; another may have its number
            known.ended_launches += launches
    known.launches = living
