"""One reading of a whole node: its cards, what is used of them, and by whom."""

from collections.abc import Mapping
from dataclasses import dataclass

from casaba.model.card_reading import CardReading
from casaba.model.gpu import Gpu
from casaba.model.ids import GpuUuid
from casaba.model.slice_use import GuardState, SliceUse


@dataclass(frozen=True, kw_only=True)
class NodeUse:
    """One reading of a node."""

    node: str
    gpus: tuple[Gpu, ...]
    readings: Mapping[GpuUuid, CardReading]
    slices: tuple[SliceUse, ...]
    guards: tuple[GuardState, ...]
    foreign: Mapping[GpuUuid, int]
    """Processes that no slice limits, by card that answers."""
    boot_time_ns: int
    """CLOCK_BOOTTIME of the reading."""
    pods_told: bool
    """Whether the kubelet told its pods; if not, they are the last that it told."""
