"""What is needed of one card."""

from dataclasses import dataclass

from casaba.model.quantity import MIB

FULL_PERCENT = 100


@dataclass(frozen=True, kw_only=True)
class CardNeed:
    """A part of one card. Two needs of one card at different times are met by the larger of each
    number, whichever card it will be."""

    memory_mib: int = 0
    memory_percent: int = 0
    """100: the whole card's memory, nobody else can have a part of it."""
    cores_percent: int = 0

    @property
    def is_all_memory(self) -> bool:
        """Whether nobody else can have a part of the card."""
        return self.memory_percent == FULL_PERCENT

    @property
    def memory_bytes(self) -> int:
        """What the card must have at least."""
        return self.memory_mib * MIB

    def covers(self, other: "CardNeed") -> bool:
        """Whether this is enough for the other on every card."""
        return self.merged(other) == self

    def merged(self, other: "CardNeed") -> "CardNeed":
        """What is enough for both, one after the other."""
        return CardNeed(
            memory_mib=max(self.memory_mib, other.memory_mib),
            memory_percent=max(self.memory_percent, other.memory_percent),
            cores_percent=max(self.cores_percent, other.cores_percent),
        )

    def exceeds(self, other: "CardNeed") -> bool:
        """Whether somebody with this may use more than with the other, or is capped elsewhere."""
        if other.is_all_memory:
            return self.cores_percent != other.cores_percent
        return self != other

    def on_card(self, memory_bytes: int) -> int:
        """MiB of a card of this size; a percentage is rounded down as the classic scheduler's."""
        percent_mib = memory_bytes // MIB * self.memory_percent // FULL_PERCENT
        return max(1, self.memory_mib, percent_mib)

    def __str__(self) -> str:
        memory = [f"{self.memory_mib} MiB"] if self.memory_mib else []
        if self.memory_percent:
            memory.append(f"{self.memory_percent} % of memory")
        cores = f" and {self.cores_percent} cores" if self.cores_percent else ""
        return f"{' or '.join(memory)}{cores}"
