"""The names of HAMi's scheduler, since 2.9 and before; ratios are 0 to 100 but for one."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from casaba.model.quantity import MIB
from casaba.policy.allocation_metrics.account import Account, Held, Share
from casaba.policy.allocation_metrics.cards import Card
from casaba.policy.allocation_metrics.families import Labels, family, points, summed
from casaba.policy.hami_build import ZONE
from casaba.wire.exposition import Family, Sample


@dataclass(frozen=True, kw_only=True)
class _Labelled:
    """How a card is labelled in both sets."""

    labels: str
    old_labels: str
    """The first of them, by other names."""
    values: Callable[[Card], Labels]


@dataclass(frozen=True, kw_only=True)
class _OfCard:
    """One value of each card."""

    name: str
    old_name: str
    about: str
    by: _Labelled
    value: Callable[[Card, Held], float]


@dataclass(frozen=True, kw_only=True)
class _OfContainer:
    """One value of each container and card."""

    name: str
    old_name: str
    about: str
    value: Callable[[Share], float]


def _card(card: Card) -> Labels:
    return (ZONE, card.node, card.uuid, card.index, card.type)


def _card_with_cores(card: Card) -> Labels:
    return (ZONE, card.node, card.uuid, card.index, str(card.cores), card.type)


def _overview(card: Card) -> Labels:
    limit_mib = str(card.memory_bytes // MIB)
    return (ZONE, card.node, card.uuid, card.index, str(card.cores), limit_mib, card.type)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


_PLAIN = _Labelled(
    labels="zone node device_uuid device_index device_type",
    old_labels="zone nodeid deviceuuid deviceidx devicetype",
    values=_card,
)
_WITHOUT_OLD_TYPE = _Labelled(
    labels=_PLAIN.labels, old_labels="zone nodeid deviceuuid deviceidx", values=_card
)
_WITH_CORES = _Labelled(
    labels="zone node device_uuid device_index device_cores device_type",
    old_labels="zone nodeid deviceuuid deviceidx devicecores devicetype",
    values=_card_with_cores,
)
_OVERVIEW = _Labelled(
    labels="zone node device_uuid device_index device_cores device_memory_limit device_type",
    old_labels="zone nodeid deviceuuid deviceidx devicecores devicememorylimit devicetype",
    values=_overview,
)

_CARDS = (
    _OfCard(
        name="hami_gpu_memory_limit_bytes",
        old_name="GPUDeviceMemoryLimit",
        about="Memory of a card in bytes",
        by=_PLAIN,
        value=lambda card, _: card.memory_bytes,
    ),
    _OfCard(
        name="hami_gpu_core_limit_ratio",
        old_name="GPUDeviceCoreLimit",
        about="Compute of a card, 0 to 100",
        by=_PLAIN,
        value=lambda card, _: _percent(card.cores, card.cores),
    ),
    _OfCard(
        name="hami_gpu_memory_allocated_bytes",
        old_name="GPUDeviceMemoryAllocated",
        about="Memory of a card that claims have, in bytes",
        by=_WITH_CORES,
        value=lambda _, held: held.memory_bytes,
    ),
    _OfCard(
        name="hami_gpu_core_allocated_ratio",
        old_name="GPUDeviceCoreAllocated",
        about="Compute of a card that claims have, 0 to 100",
        by=_PLAIN,
        value=lambda card, held: _percent(held.cores, card.cores),
    ),
    _OfCard(
        name="hami_gpu_shared_count",
        old_name="GPUDeviceSharedNum",
        about="Containers that share a card",
        by=_PLAIN,
        value=lambda _, held: held.containers,
    ),
    _OfCard(
        name="hami_node_gpu_overview",
        old_name="nodeGPUOverview",
        about="Memory of a card that claims have, in bytes; the limit in the label is in MiB",
        by=_OVERVIEW,
        value=lambda _, held: held.memory_bytes,
    ),
    _OfCard(
        name="hami_node_gpu_memory_allocated_ratio",
        old_name="nodeGPUMemoryPercentage",
        about="Part of a card's memory that claims have, 0 to 1",
        by=_WITHOUT_OLD_TYPE,
        value=lambda card, held: held.memory_bytes / card.memory_bytes if card.memory_bytes else 0,
    ),
)

_OLD_NAMES_OF_DRA_MONITOR = frozenset(
    {
        "GPUDeviceMemoryLimit",
        "GPUDeviceCoreLimit",
        "GPUDeviceMemoryAllocated",
        "GPUDeviceCoreAllocated",
    }
)

_CONTAINER = "zone namespace node pod container_index device_uuid"
_OLD_CONTAINER = "zone podnamespace nodename podname containeridx deviceuuid"
_CONTAINERS = (
    _OfContainer(
        name="hami_vgpu_memory_allocated_bytes",
        old_name="vGPUMemoryAllocated",
        about="Memory of a card that a container's claims have, in bytes",
        value=lambda share: share.memory_bytes,
    ),
    _OfContainer(
        name="hami_vgpu_core_allocated_ratio",
        old_name="vGPUCoreAllocated",
        about="Compute of a card that a container's claims have, 0 to 100",
        value=lambda share: _percent(share.cores, share.card.cores),
    ),
)

_NO_MIG = "MIG instances; none are offered"
_MIG = family(
    "hami_node_gpu_mig_instance_info",
    _NO_MIG,
    "zone node device_uuid device_index mig_uuid profile gpu_instance_id compute_instance_id "
    "placement_start placement_size",
)
_OLD_MIG = family("nodeGPUMigInstance", _NO_MIG, "zone nodeid deviceuuid deviceidx migname")


def hami_families(account: Account) -> tuple[Family, ...]:
    """The names since HAMi 2.9."""
    cards = [family(row.name, row.about, row.by.labels, _values(account, row)) for row in _CARDS]
    containers = [
        summed(row.name, row.about, _CONTAINER, _of_containers(account, row.value))
        for row in _CONTAINERS
    ]
    return (*cards, _MIG, *containers)


def legacy_scheduler_families(account: Account, *, without_cards: bool) -> tuple[Family, ...]:
    """The names before HAMi 2.9; `without_cards`: without those that hami-dra-monitor has too."""
    left_out = _OLD_NAMES_OF_DRA_MONITOR if without_cards else frozenset()
    cards = [
        family(row.old_name, row.about, row.by.old_labels, _old_values(account, row))
        for row in _CARDS
        if row.old_name not in left_out
    ]
    containers = [
        summed(row.old_name, row.about, _OLD_CONTAINER, _of_containers(account, row.value))
        for row in _CONTAINERS
    ]
    return (*cards, _OLD_MIG, *containers)


def _values(account: Account, row: _OfCard) -> Iterable[Sample]:
    return points(account.cards, row.by.values, lambda card: row.value(card, account.held[card.id]))


def _old_values(account: Account, row: _OfCard) -> Iterator[Sample]:
    count = len(row.by.old_labels.split())
    for values, number in _values(account, row):
        yield values[:count], number


def _of_containers(account: Account, value: Callable[[Share], float]) -> Iterator[Sample]:
    for share in account.shares:
        for pod, container in _containers(share):
            card = share.card
            yield (ZONE, share.namespace, card.node, pod, container, card.uuid), value(share)


def _containers(share: Share) -> Iterable[tuple[str, str]]:
    """A pod of which no container is known to use it is told of with an empty index."""
    for user in share.users:
        for container in user.containers or ("",):
            yield user.pod, container
