"""HAMi's metrics of real use, by name and label those of its vGPUmonitor, for its dashboards.

One series for each container and card, added up where a container has several budgets on a card,
and there from the claim's preparation on, not only from the first launch. Ratios are 0-100, as in
HAMi. Of budgets that containers share see `usage_metrics`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from casaba.model.card_reading import CardReading
from casaba.model.gpu import Gpu
from casaba.model.ids import GpuUuid
from casaba.model.node_use import NodeUse
from casaba.model.slice_use import CardUse, SliceUse
from casaba.policy.hami_build import ZONE
from casaba.wire.exposition import Family, Sample, known_samples

CONTAINER_LABELS = ("namespace", "pod", "container", "vdevice_index", "device_uuid", "zone")
HOST_LABELS = ("node", "device_index", "device_uuid", "device_type", "zone")

LEGACY_CONTAINER_LABELS = (
    "podnamespace",
    "podname",
    "ctrname",
    "vdeviceid",
    "deviceuuid",
    "zone",
)
LEGACY_HOST_LABELS = ("nodeid", "deviceidx", "deviceuuid", "devicetype", "zone")
LEGACY_SIZE_LABELS = ("context", "module", "data", "offset")
"""HAMi puts sizes into these labels, a new series for each size; here they are empty."""

N = TypeVar("N", int, float)

_NS_PER_S = 1e9
_PERCENT = 100.0


@dataclass
class VDevice:
    """A card as one container has it; its budgets on the card added up."""

    index: int
    """Of the container's cards, in the order of its budgets."""
    limit_bytes: int = 0
    used_bytes: int | None = 0
    """None, here and below: that of one of the budgets can't be read now."""
    context_bytes: int | None = 0
    percent: float | None = 0.0
    """Of the card's time; None while one of the budgets' is not known."""
    idle_s: float | None = None
    """Since the last launch; None before the first."""


_Key = tuple[str, str, str, GpuUuid]
"""Namespace, pod, container and card."""


def hami_usage_families(use: NodeUse) -> list[Family]:
    """HAMi's names since 2.9."""
    return [*_host_families(use, _HOST, HOST_LABELS), *_container_families(use)]


def legacy_usage_families(use: NodeUse) -> list[Family]:
    """HAMi's names before 2.9, with the labels that they had."""
    vdevices = _vdevices(use)
    sizes = ("",) * len(LEGACY_SIZE_LABELS)
    memory = [
        (_container_values(key, one) + sizes, one.used_bytes) for key, one in vdevices.items()
    ]
    return [
        *_host_families(use, _LEGACY_HOST, LEGACY_HOST_LABELS),
        *_families(vdevices, _LEGACY_CONTAINER, LEGACY_CONTAINER_LABELS),
        _gauge(
            "Device_memory_desc_of_container",
            "Memory asked for by the container.",
            LEGACY_CONTAINER_LABELS + LEGACY_SIZE_LABELS,
            known_samples(memory),
        ),
    ]


# name, text, value of a card's reading
_HostRow = tuple[str, str, Callable[[CardReading], int | None]]
_HOST: tuple[_HostRow, ...] = (
    (
        "hami_host_gpu_memory_used_bytes",
        "Memory of the card in use, whoever uses it.",
        lambda card: card.memory_used_bytes,
    ),
    (
        "hami_host_gpu_utilization_ratio",
        "Part of the last moments in which a kernel ran on the card (0-100).",
        lambda card: card.utilization_percent,
    ),
    (
        "hami_host_gpu_memory_controller_utilization_ratio",
        "Part of the last moments in which the card's memory was read or written (0-100).",
        lambda card: card.memory_utilization_percent,
    ),
)
_LEGACY_HOST: tuple[_HostRow, ...] = (
    ("HostGPUMemoryUsage", "Memory of the card in use.", lambda card: card.memory_used_bytes),
    ("HostCoreUtilization", "Utilisation of the card.", lambda card: card.utilization_percent),
)

# name, text, value of a container's card
_ContainerRow = tuple[str, str, Callable[[VDevice], float | None]]
_CONTAINER: tuple[_ContainerRow, ...] = (
    (
        "hami_vgpu_memory_used_bytes",
        "Memory that the container asked for.",
        lambda one: one.used_bytes,
    ),
    (
        "hami_vgpu_memory_limit_bytes",
        "Memory that the container can ask for.",
        lambda one: one.limit_bytes,
    ),
    (
        "hami_container_device_memory_bytes",
        "Memory that the container asked for.",
        lambda one: one.used_bytes,
    ),
    (
        "hami_container_device_utilization_ratio",
        "Part of the card's time that the container used since the last scrape (0-100).",
        lambda one: one.percent,
    ),
    (
        "hami_container_last_kernel_elapsed_seconds",
        "Seconds since the last launch; no sample before the first.",
        lambda one: one.idle_s,
    ),
    (
        "hami_vgpu_memory_context_bytes",
        "What the contexts of the container are taken to cost.",
        lambda one: one.context_bytes,
    ),
    (
        "hami_vgpu_memory_module_bytes",
        "Always 0: modules are in what a context is taken to cost.",
        lambda one: 0,
    ),
    (
        "hami_vgpu_memory_buffer_bytes",
        "Memory that the container asked for.",
        lambda one: one.used_bytes,
    ),
)
_LEGACY_CONTAINER: tuple[_ContainerRow, ...] = (
    ("vGPU_device_memory_usage_in_bytes", "Memory asked for.", lambda one: one.used_bytes),
    ("vGPU_device_memory_limit_in_bytes", "Memory limit.", lambda one: one.limit_bytes),
    ("Device_utilization_desc_of_container", "Part of the card's time.", lambda one: one.percent),
    ("Device_last_kernel_of_container", "Seconds since the last launch.", lambda one: one.idle_s),
)


def _host_families(use: NodeUse, rows: Iterable[_HostRow], labels: tuple[str, ...]) -> list[Family]:
    told = [
        (_host_values(use.node, gpu), use.readings[gpu.uuid])
        for gpu in use.gpus
        if gpu.uuid in use.readings
    ]
    return [
        _gauge(name, text, labels, known_samples([(key, value(card)) for key, card in told]))
        for name, text, value in rows
    ]


def _host_values(node: str, gpu: Gpu) -> tuple[str, ...]:
    return (node, str(gpu.minor), gpu.uuid, f"NVIDIA-{gpu.product_name}", ZONE)


def _container_families(use: NodeUse) -> list[Family]:
    return _families(_vdevices(use), _CONTAINER, CONTAINER_LABELS)


def _families(
    vdevices: Mapping[_Key, VDevice], rows: Iterable[_ContainerRow], labels: tuple[str, ...]
) -> list[Family]:
    told = [(_container_values(key, one), one) for key, one in vdevices.items()]
    return [
        _gauge(name, text, labels, known_samples([(key, value(one)) for key, one in told]))
        for name, text, value in rows
    ]


def _container_values(key: _Key, vdevice: VDevice) -> tuple[str, ...]:
    namespace, pod, container, gpu = key
    return (namespace, pod, container, str(vdevice.index), gpu, ZONE)


def _vdevices(use: NodeUse) -> dict[_Key, VDevice]:
    found: dict[_Key, VDevice] = {}
    counts: dict[tuple[str, str, str], int] = {}
    for one in use.slices:
        container = (one.namespace, one.owner.pod, one.owner.container)
        for card in one.cards:
            vdevice = found.get((*container, card.gpu))
            if vdevice is None:
                index = counts.get(container, 0)
                counts[container] = index + 1
                vdevice = found[(*container, card.gpu)] = VDevice(index)
            _add(vdevice, one, card, use.boot_time_ns)
    return found


def _add(vdevice: VDevice, slice_: SliceUse, card: CardUse, boot_time_ns: int) -> None:
    """A tenant that says it launched in the future has just launched."""
    vdevice.limit_bytes += card.memory_limit_bytes
    vdevice.used_bytes = _sum(vdevice.used_bytes, card.memory_used_bytes)
    vdevice.context_bytes = _sum(vdevice.context_bytes, card.overhead_bytes)
    percent = _sum(vdevice.percent, card.card_percent)
    vdevice.percent = None if percent is None else min(percent, _PERCENT)
    if slice_.last_launch_ns:
        idle_s = max(boot_time_ns - slice_.last_launch_ns, 0) / _NS_PER_S
        vdevice.idle_s = idle_s if vdevice.idle_s is None else min(vdevice.idle_s, idle_s)


def _sum(one: N | None, other: N | None) -> N | None:
    return None if one is None or other is None else one + other


def _gauge(name: str, text: str, labels: tuple[str, ...], samples: Sequence[Sample]) -> Family:
    return Family(name=name, kind="gauge", help=text, labels=labels, samples=samples)
