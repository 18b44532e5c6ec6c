"""Clocks that stand still until they are told."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta


def _whole_seconds_now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


@dataclass
class Clocks:
    """True time, and a wall clock that may be set wrong."""

    started: datetime = field(default_factory=_whole_seconds_now)
    elapsed_s: float = 0.0
    wrong_by_s: float = 0.0

    def utc_now(self) -> datetime:
        """What the wall clock shows."""
        return self.true_now() + timedelta(seconds=self.wrong_by_s)

    def true_now(self) -> datetime:
        """What it should show."""
        return self.started + timedelta(seconds=self.elapsed_s)

    def monotonic_s(self) -> float:
        """The clock that nobody sets."""
        return self.elapsed_s

    def pass_by(self, seconds: float) -> None:
        """Time goes on."""
        self.elapsed_s += seconds
