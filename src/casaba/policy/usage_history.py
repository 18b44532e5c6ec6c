"""What must be remembered from one reading of the budgets to the next."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from casaba.model.usage import BudgetUsage
from casaba.policy.lone_use import LoneUse

BudgetKey = tuple[str, str]
"""Claim UID and request."""

WINDOW_NS = 5_000_000_000
"""Utilisation is the mean since the last reading that is at least so old."""

_APART_NS = 1_000_000_000
"""Readings that are closer than this are not remembered one by one."""

_PERCENT = 100.0


@dataclass(frozen=True, kw_only=True)
class Reading:
    """All budgets of a node at one moment."""

    now_ns: int
    """Of any clock that only goes forward."""
    budgets: Mapping[BudgetKey, BudgetUsage | None]
    """None: there, but it can't be read now."""
    lone: Mapping[BudgetKey, tuple[LoneUse | None, ...]] = field(default_factory=dict)
    """Of each card of a budget, in the policy's order."""


class UsageHistory:
    """Follows the budgets of a node.

    A tenant can write what it likes into its own region: what is made of it stays in its range,
    and no total ever goes back but to zero. What a budget without a cap used before this history
    began, and what processes launched before, is not counted: no region tells all of it, and a
    total that begins above zero would be taken for new use.
    """

    def __init__(self) -> None:
        self._budgets: dict[BudgetKey, _Budget] = {}
        self.has_begun = False
        """Whether there was a reading."""

    def observe(self, reading: Reading) -> None:
        """Take a reading that is told; budgets that are not in it are forgotten."""
        self.follow(reading)
        for key, budget in self._budgets.items():
            budget.tell(reading.budgets[key], reading.now_ns)

    def follow(self, reading: Reading) -> None:
        """Take a reading between those that are told: totals grow, the window stays."""
        self._budgets = {
            key: known
            for key, usage in reading.budgets.items()
            if (known := self._known(key, usage)) is not None
        }
        for key, budget in self._budgets.items():
            usage = reading.budgets[key]
            if usage is not None and not usage.damaged:
                budget.take(usage, reading.lone.get(key, ()), reading.now_ns)
        self.has_begun = True

    def knows(self, key: BudgetKey) -> bool:
        """Whether a budget was in the last reading and could be read once."""
        return key in self._budgets

    def card_percent(self, key: BudgetKey, card: int) -> float | None:
        """Part of a card's time that a budget used, 0 to 100.

        None where it is not known: before the second reading, unless nothing was ever charged,
        and where neither the guard nor the card tells.
        """
        known = self._card(key, card)
        return known.percent if known else None

    def busy_ns(self, key: BudgetKey, card: int) -> int | None:
        """A card's time that a budget used; None before there was a reading."""
        known = self._card(key, card)
        return known.total_ns if known else None

    def launches(self, key: BudgetKey) -> int:
        """Launches of living processes, and of dead ones as far as a reading saw them."""
        known = self._budgets.get(key)
        return known.launches if known else 0

    def _card(self, key: BudgetKey, card: int) -> "_Card | None":
        known = self._budgets.get(key)
        return known.cards[card] if known and card < len(known.cards) else None

    def _known(self, key: BudgetKey, usage: BudgetUsage | None) -> "_Budget | None":
        """One with another region is another, which begins at zero."""
        known = self._budgets.get(key)
        if usage is None or usage.damaged or (known and known.region_id == usage.region_id):
            return known
        return _Budget(usage, is_new=self.has_begun)


@dataclass
class _Card:
    """A card's time as one budget uses it."""

    measured_ns: int
    """The most that the guards told: they charge ahead, and take back what was too much."""
    uncounted_ns: int
    """Of it: from before the history began."""
    lone_ns: int = 0
    """What the card told where the guards measured nothing."""
    percent: float | None = None
    lone: LoneUse | None = None
    seen_ns: int = 0
    told: deque[tuple[int, int]] = field(default_factory=deque)
    """Moments and totals."""

    @property
    def total_ns(self) -> int:
        return self.measured_ns - self.uncounted_ns + self.lone_ns

    def take(self, busy_ns: int, lone: LoneUse | None, now_ns: int) -> None:
        gained_ns = max(busy_ns - self.measured_ns, 0)
        self.measured_ns += gained_ns
        if self.lone and lone and (self.lone.present or lone.present):
            used_ns = int((lone.percent or 0) / _PERCENT * (now_ns - self.seen_ns))
            self.lone_ns += max(used_ns - gained_ns, 0)
        self.lone, self.seen_ns = lone, now_ns

    def tell(self, now_ns: int) -> None:
        while len(self.told) > 1 and now_ns - self.told[1][0] >= WINDOW_NS:
            self.told.popleft()
        self.percent = self._percent_at(now_ns)
        if not self.told or now_ns - self.told[-1][0] >= _APART_NS:
            self.told.append((now_ns, self.total_ns))

    def _percent_at(self, now_ns: int) -> float | None:
        is_lone = self.lone is not None and self.lone.present
        if self.lone and is_lone and (self.lone.percent is None or not self.told):
            return self.lone.percent
        if not self.told:
            return None if self.measured_ns else 0.0
        since_ns, before_ns = self.told[0]
        if now_ns <= since_ns:
            return self.percent
        used = (self.total_ns - before_ns) / (now_ns - since_ns)
        return min(_PERCENT * used, _PERCENT)


class _Budget:
    """What is remembered of one budget."""

    def __init__(self, usage: BudgetUsage, *, is_new: bool) -> None:
        """`is_new`: made since the history began, so that all of its use is counted."""
        self.region_id = usage.region_id
        self.cards = [
            _Card(times.busy_ns, 0 if is_new or limits.is_capped else times.busy_ns)
            for times, limits in zip(usage.times, usage.policy.cards, strict=False)
        ]
        self._living = _launches(usage)
        self._ended = 0 if is_new else -sum(self._living.values())

    @property
    def launches(self) -> int:
        return self._ended + sum(self._living.values())

    def take(self, usage: BudgetUsage, lone: tuple[LoneUse | None, ...], now_ns: int) -> None:
        for number, card in enumerate(self.cards):
            own = lone[number] if number < len(lone) else None
            card.take(usage.times[number].busy_ns, own, now_ns)
        living = _launches(usage)
        for process, launches in self._living.items():
            if living.get(process, -1) < launches:
                self._ended += launches
        self._living = living

    def tell(self, usage: BudgetUsage | None, now_ns: int) -> None:
        """What can't be read has no utilisation."""
        for card in self.cards:
            card.tell(now_ns)
            if usage is None or usage.damaged:
                card.percent = None


def _launches(usage: BudgetUsage) -> dict[tuple[int, int], int]:
    """Of each living process: by its slot and since when it has it, for PIDs are not unique."""
    return {(one.slot, one.started_ns): one.launches for one in usage.processes}
