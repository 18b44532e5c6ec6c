"""What the cards say of themselves now."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from casaba.errors import HostError
from casaba.model.card_reading import CardReading
from casaba.model.gpu import Gpu
from casaba.model.ids import GpuUuid
from casaba.node.nvidia.nvml import Nvml, NvmlCard, NvmlError, find_library

T = TypeVar("T")


def read_cards(driver_root: Path, gpus: Iterable[Gpu]) -> dict[GpuUuid, CardReading]:
    """A reading of each card; one that does not answer says so. Blocking; never raises."""
    try:
        with Nvml(find_library(driver_root)).session() as nvml:
            return {gpu.uuid: _reading(nvml, gpu.uuid) for gpu in gpus}
    except HostError as error:
        return {gpu.uuid: CardReading(gpu=gpu.uuid, error=str(error)) for gpu in gpus}


def _reading(nvml: Nvml, gpu: GpuUuid) -> CardReading:
    """A card that answers at all is asked for the rest; not every card tells everything."""
    try:
        card = nvml.card(gpu)
        memory = card.memory_used_bytes()
    except NvmlError as error:
        return CardReading(gpu=gpu, error=str(error))
    rates = _told(card, NvmlCard.utilization_percent)
    return CardReading(
        gpu=gpu,
        memory_used_bytes=memory,
        utilization_percent=rates[0] if rates else None,
        memory_utilization_percent=rates[1] if rates else None,
        pids=_told(card, NvmlCard.pids) or (),
    )


def _told(card: NvmlCard, question: Callable[[NvmlCard], T]) -> T | None:
    try:
        return question(card)
    except NvmlError:
        return None
