"""What a card says of itself at one moment."""

from dataclasses import dataclass

from casaba.model.ids import GpuUuid


@dataclass(frozen=True, kw_only=True)
class CardReading:
    """One card, as NVML answers; None where it does not."""

    gpu: GpuUuid
    memory_used_bytes: int | None = None
    utilization_percent: int | None = None
    """Part of the last moments in which a kernel ran."""
    memory_utilization_percent: int | None = None
    """Part of the last moments in which device memory was read or written."""
    pids: tuple[int, ...] = ()
    """Processes with a context, in the PID namespace of who asks."""
    error: str | None = None
    """Why the card can't be used, when it does not answer."""
