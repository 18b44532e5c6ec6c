"""What a person can set on `casaba run`."""

from dataclasses import dataclass, field
from pathlib import Path

from casaba.settings.budgets import BudgetSettings


@dataclass(frozen=True, kw_only=True)
class LocalSliceSettings:
    """One slice for one command."""

    memory: str
    """Limit of the process tree as a quantity, such as 10Gi."""

    command: tuple[str, ...]
    """Program and arguments."""

    cores_percent: int = 0
    """Share of the card's time that the process tree gets at most; 0 and 100: no cap."""

    weight: int = 0
    """Share of time relative to other slices that want the card too; 0: by cores."""

    gpu: str | None = None
    """NVML index or UUID of the card; None: the only one, or the first."""

    driver_root: Path = Path("/")
    """Root of the NVIDIA driver's files."""

    simulated_model: str | None = None
    """Model of a virtual card to supply; None: a real card."""

    announce: bool = False
    """Whether the guard writes its line on stderr."""

    budgets: BudgetSettings = field(default_factory=BudgetSettings)
    """Numbers of the policy file."""
