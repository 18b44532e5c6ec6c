"""The cards that slices show."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from casaba.policy.allocation import DeviceId
from casaba.policy.allocation_metrics.reading import amount
from casaba.policy.slices import CORES, MEMORY
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.kubernetes import Device, DeviceAttribute, ResourceSlice

KnownCards = dict[tuple[str, str], "Card"]
"""By pool and device name."""

_NONE = DeviceAttribute()
_CLASSIC_VENDOR = "NVIDIA"


@dataclass(frozen=True, kw_only=True)
class Card:
    """One card with what its labels say."""

    id: DeviceId
    node: str
    uuid: str
    index: str
    """Minor number of the device node, which stays; what the name ends with if there is none."""
    product: str
    brand: str
    memory_bytes: int
    cores: int

    @property
    def type(self) -> str:
        """HAMi's name for a kind of card: vendor and product."""
        return f"{_CLASSIC_VENDOR}-{self.product}"


def cards_of(slices: Iterable[ResourceSlice]) -> tuple[tuple[Card, ...], KnownCards]:
    """The cards by node and index, each once, and how claims name them."""
    known: KnownCards = {}
    found: dict[tuple[str, str, str], Card] = {}
    for slice_ in _current(slices):
        for device in slice_.spec.devices:
            card = _card(slice_, device)
            identity = (card.node, card.uuid, card.index)
            known.setdefault((card.id.pool, card.id.device), found.setdefault(identity, card))
    cards = sorted(found.values(), key=lambda card: (card.node, len(card.index), card.index))
    return tuple(cards), known


def _current(slices: Iterable[ResourceSlice]) -> Iterator[ResourceSlice]:
    """Of each pool the newest complete generation; the newest one if none is complete.

    While the slices of a pool are written anew, one by one, its cards stay known that way.
    """
    pools: dict[str, dict[int, list[ResourceSlice]]] = {}
    for slice_ in slices:
        if slice_.spec.driver == DRIVER_NAME:
            pool = pools.setdefault(slice_.spec.pool.name, {})
            pool.setdefault(slice_.spec.pool.generation, []).append(slice_)
    for _, pool in sorted(pools.items()):
        generations = [pool[number] for number in sorted(pool, reverse=True)]
        chosen = next(filter(_is_complete, generations), generations[0])
        yield from sorted(chosen, key=lambda slice_: slice_.metadata.name)


def _is_complete(members: list[ResourceSlice]) -> bool:
    return len(members) == members[0].spec.pool.resource_slice_count


def _card(slice_: ResourceSlice, device: Device) -> Card:
    minor = device.attributes.get("minor", _NONE).int_
    capacity = {name: entry.value for name, entry in device.capacity.items()}
    return Card(
        id=DeviceId(slice_.spec.driver, slice_.spec.pool.name, device.name),
        node=slice_.spec.node_name or device.node_name or slice_.spec.pool.name,
        uuid=_text(device, "uuid"),
        index=str(minor) if minor is not None else device.name.rpartition("-")[2],
        product=_text(device, "productName"),
        brand=_text(device, "brand"),
        memory_bytes=amount(capacity.get(MEMORY)),
        cores=amount(capacity.get(CORES)),
    )


def _text(device: Device, attribute: str) -> str:
    return device.attributes.get(attribute, _NONE).string or ""
