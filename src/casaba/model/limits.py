"""What a tenant may use: the limits of one budget, which is one request of one claim."""

from dataclasses import dataclass

from msgspec import Struct

from casaba.model.ids import GpuUuid

_WHOLE_CARD = 100
"""Percent."""


def is_cap(cores_percent: int) -> bool:
    """Whether cores limit anything: 0 and 100 do not (pacing_is_cap of the guard)."""
    return 0 < cores_percent < _WHOLE_CARD


@dataclass(frozen=True, kw_only=True)
class CardLimits:
    """Limits of one budget on one card."""

    gpu: GpuUuid
    memory_bytes: int
    context_allowance_bytes: int
    """Overhead of contexts that is free."""
    context_size_bytes: int
    """What one context is taken to cost."""
    cores_percent: int = 0
    """Share of the card's time; 0 and 100 mean no cap."""
    weight: int = 0
    """Relative share of contended time, as policy.parameters computes it; 0: by cores."""

    @property
    def is_capped(self) -> bool:
        """Whether the card's time is limited."""
        return is_cap(self.cores_percent)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The content of a policy file."""

    cards: tuple[CardLimits, ...]
    announce: bool
    """Whether the guard writes its line to stderr once a process."""
    generation: int = 1
    """Grows with each change of the limits."""


class CardUsage(Struct, frozen=True, kw_only=True):
    """What a budget's live processes have on one card, in bytes."""

    asked_bytes: int
    overhead_bytes: int
