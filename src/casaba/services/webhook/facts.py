"""From the cluster's objects to the facts that a conversion depends on."""

import contextlib
from collections.abc import Iterable

from msgspec import field

from casaba.errors import InvalidInput
from casaba.model.quantity import parse
from casaba.policy.convert import Card
from casaba.policy.slices import MEMORY
from casaba.wire.kubernetes import Device, DeviceClass, DeviceClassSpec, ObjectMeta, ResourceSlice
from casaba.wire.kubernetes.meta import Wire


class SellingClassSpec(DeviceClassSpec, frozen=True):
    """With the name under which kube-scheduler gives devices for a resource (KEP-5004)."""

    extended_resource_name: str | None = None


class SellingClass(DeviceClass, frozen=True):
    """A DeviceClass that may stand for an extended resource."""

    spec: SellingClassSpec = SellingClassSpec()


class QuotaSpec(Wire, frozen=True):
    """What a namespace may have of each resource, as quantities."""

    hard: dict[str, str] = field(default_factory=dict)


class QuotaLimits(Wire, frozen=True):
    """A ResourceQuota, reduced to its limits."""

    metadata: ObjectMeta
    spec: QuotaSpec = QuotaSpec()


def limited_by(quotas: Iterable[QuotaLimits]) -> frozenset[str]:
    """The names of all resources that some quotas limit."""
    return frozenset(name for quota in quotas for name in quota.spec.hard)


def sold_as(classes: Iterable[SellingClass]) -> frozenset[str]:
    """The extended resources that classes stand for."""
    return frozenset(name for it in classes if (name := it.spec.extended_resource_name))


def cards_of(slices: Iterable[ResourceSlice]) -> tuple[Card, ...]:
    """The cards of each pool's newest generation; a device without memory is no card."""
    newest: dict[str, tuple[int, list[ResourceSlice]]] = {}
    for slice_ in slices:
        pool = slice_.spec.pool
        generation, held = newest.setdefault(pool.name, (pool.generation, []))
        if pool.generation > generation:
            newest[pool.name] = (pool.generation, [slice_])
        elif pool.generation == generation:
            held.append(slice_)
    return tuple(
        card
        for _, held in newest.values()
        for slice_ in held
        for device in slice_.spec.devices
        if (card := _card(device, slice_)) is not None
    )


def _card(device: Device, slice_: ResourceSlice) -> Card | None:
    memory_bytes = _memory_bytes(device)
    if memory_bytes is None:
        return None
    return Card(
        memory_bytes=memory_bytes,
        product_name=_text(device, "productName"),
        uuid=_text(device, "uuid"),
        node=slice_.spec.node_name or "",
    )


def _memory_bytes(device: Device) -> int | None:
    capacity = device.capacity.get(MEMORY)
    with contextlib.suppress(InvalidInput):
        return parse(capacity.value) if capacity is not None else None
    return None


def _text(device: Device, name: str) -> str:
    attribute = device.attributes.get(name)
    return (attribute.string or "") if attribute is not None else ""
