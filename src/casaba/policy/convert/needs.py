"""What is needed of one card."""

from collections.abc import Iterable
from dataclasses import dataclass

from casaba.model.quantity import MIB

FULL_PERCENT = 100
"""100 cores are no cap either: nobody could use more."""


@dataclass(frozen=True, kw_only=True)
class CardNeed:
    """A part of one card."""

    memory_mib: int = 0
    memory_percent: int = 0
    """100: the whole card's memory, nobody else can have a part of it."""
    cores_percent: int = 0
    """0: no cap, no guarantee."""
    fillings: tuple["Filling", ...] = ()
    """More where other requests of the card are too little for an init container."""

    @property
    def is_all_memory(self) -> bool:
        """Whether nobody else can have a part of the card."""
        return self.memory_percent == FULL_PERCENT

    @property
    def is_part_of_card(self) -> bool:
        """Whether the amount depends on the card."""
        return bool(self.fillings) or 0 < self.memory_percent < FULL_PERCENT

    @property
    def memory_bytes(self) -> int:
        """What the card must have at least."""
        return self.memory_mib * MIB

    def covers(self, other: "CardNeed") -> bool:
        """Whether this is enough for the other on every card; without cores there is no cap."""
        enough_cores = not self.cores_percent or self.cores_percent >= other.cores_percent
        return enough_cores and self.covers_memory(other)

    def covers_memory(self, other: "CardNeed") -> bool:
        """Whether the memory is enough on every card."""
        return self.memory_mib >= other.memory_mib and self.memory_percent >= other.memory_percent

    def merged(self, other: "CardNeed") -> "CardNeed":
        """The larger of each number: for one after the other."""
        return CardNeed(
            memory_mib=max(self.memory_mib, other.memory_mib),
            memory_percent=max(self.memory_percent, other.memory_percent),
            cores_percent=max(self.cores_percent, other.cores_percent),
        )

    def on_card(self, memory_bytes: int) -> int:
        """MiB of a card of this size; a percentage is rounded down as the classic scheduler's."""
        percent_mib = memory_bytes // MIB * self.memory_percent // FULL_PERCENT
        more_mib = (filling.on_card(memory_bytes) for filling in self.fillings)
        return max(1, self.memory_mib, percent_mib, *more_mib)

    def fits(self, memory_bytes: int) -> bool:
        """Whether a card of this size has so much, with what the fillings count on."""
        beside = max((filling.others_on_card(memory_bytes) for filling in self.fillings), default=0)
        return (self.on_card(memory_bytes) + beside) * MIB <= memory_bytes

    @property
    def memory(self) -> str:
        """The memory, for a message."""
        if self.is_all_memory:
            return "all memory of the card"
        amounts = [f"{self.memory_mib} MiB"] if self.memory_mib else []
        if self.memory_percent:
            amounts.append(f"{self.memory_percent} % of memory")
        return " or ".join([*amounts, *(filling.memory for filling in self.fillings)])


@dataclass(frozen=True, kw_only=True)
class Filling:
    """What is missing to a total on one card, beside other requests."""

    total: CardNeed
    others: tuple[CardNeed, ...]

    def on_card(self, memory_bytes: int) -> int:
        """MiB of a card of this size; nothing is missing if it is not positive."""
        return self.total.on_card(memory_bytes) - self.others_on_card(memory_bytes)

    def others_on_card(self, memory_bytes: int) -> int:
        """MiB that the other requests have of it."""
        return memory_on_card(self.others, memory_bytes)

    @property
    def depends_on_card(self) -> bool:
        """Whether there is a percentage in it."""
        return any(need.memory_percent for need in (self.total, *self.others))

    @property
    def memory(self) -> str:
        """The difference, for a message."""
        return f"{self.total.memory} less {' and '.join(need.memory for need in self.others)}"


def memory_on_card(needs: Iterable[CardNeed], memory_bytes: int) -> int:
    """MiB of all of them on a card of this size."""
    return sum([need.on_card(memory_bytes) for need in needs])
