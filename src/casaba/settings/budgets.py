"""Numbers that go into every policy file."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class BudgetSettings:
    """Defaults of a budget beside what the claim asks for."""

    context_allowance_bytes: int = 512 * MIB
    """Overhead of contexts per budget and card that is free, in bytes."""

    context_size_bytes: int = 256 * MIB
    """What one CUDA context is taken to cost, in bytes."""

    announce: bool = True
    """Whether the guard writes its line on stderr at a process's first cuInit or nvmlInit."""
