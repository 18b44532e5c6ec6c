"""The names of HAMi's scheduler: cards, containers; ratios are 0 to 100 but for one."""

from collections.abc import Callable, Iterable, Iterator

from casaba.model.quantity import MIB
from casaba.policy.allocation_metrics.account import Account, Held, Share
from casaba.policy.allocation_metrics.cards import Card
from casaba.policy.allocation_metrics.families import Labels, family, points, summed
from casaba.wire.exposition import Family, Sample

ZONE = "vGPU"
"""Value of the label `zone`, which every series of this set carries."""

_CARD = "zone node device_uuid device_index device_type"
_CONTAINER = "zone namespace node pod container_index device_uuid"
_MIG = (
    "zone node device_uuid device_index mig_uuid profile gpu_instance_id compute_instance_id "
    "placement_start placement_size"
)
_OLD_CARD = "zone nodeid deviceuuid deviceidx devicetype"
_OLD_CONTAINER = "zone podnamespace nodename podname containeridx deviceuuid"


def hami_families(account: Account) -> tuple[Family, ...]:
    """The names since HAMi 2.9."""
    cards, held = account.cards, _By(account)
    return (
        family(
            "hami_gpu_memory_limit_bytes",
            "Memory of a card",
            _CARD,
            points(cards, _card, _memory_limit),
        ),
        family(
            "hami_gpu_core_limit_ratio",
            "Compute of a card, 0 to 100",
            _CARD,
            points(cards, _card, _core_limit),
        ),
        family(
            "hami_gpu_memory_allocated_bytes",
            "Memory of a card that claims have",
            "zone node device_uuid device_index device_cores device_type",
            points(cards, _card_with_cores, held.memory),
        ),
        family(
            "hami_gpu_shared_count",
            "Containers that share a card",
            _CARD,
            points(cards, _card, held.containers),
        ),
        family(
            "hami_gpu_core_allocated_ratio",
            "Compute of a card that claims have, 0 to 100",
            _CARD,
            points(cards, _card, held.core_percent),
        ),
        family(
            "hami_node_gpu_overview",
            "Memory of a card that claims have, in bytes; the limit in the label is in MiB",
            "zone node device_uuid device_index device_cores device_memory_limit device_type",
            points(cards, _overview, held.memory),
        ),
        family(
            "hami_node_gpu_memory_allocated_ratio",
            "Part of a card's memory that claims have, 0 to 1",
            _CARD,
            points(cards, _card, held.memory_ratio),
        ),
        family("hami_node_gpu_mig_instance_info", "MIG instances; none are offered", _MIG),
        summed(
            "hami_vgpu_memory_allocated_bytes",
            "Memory of a card that a container's claims have",
            _CONTAINER,
            _of_containers(account, _share_memory),
        ),
        summed(
            "hami_vgpu_core_allocated_ratio",
            "Compute of a card that a container's claims have, 0 to 100",
            _CONTAINER,
            _of_containers(account, _share_core_percent),
        ),
    )


def legacy_scheduler_families(account: Account, *, without_cards: bool) -> tuple[Family, ...]:
    """The names before HAMi 2.9; `without_cards`: without those that hami-dra-monitor has too."""
    cards, held = account.cards, _By(account)
    shared_with_dra = (
        family(
            "GPUDeviceMemoryLimit",
            "Memory of a card in bytes",
            _OLD_CARD,
            points(cards, _card, _memory_limit),
        ),
        family(
            "GPUDeviceCoreLimit",
            "Compute of a card, 0 to 100",
            _OLD_CARD,
            points(cards, _card, _cores),
        ),
        family(
            "GPUDeviceMemoryAllocated",
            "Memory of a card that claims have, in bytes",
            "zone nodeid deviceuuid deviceidx devicecores devicetype",
            points(cards, _card_with_cores, held.memory),
        ),
        family(
            "GPUDeviceCoreAllocated",
            "Compute of a card that claims have, 0 to 100",
            _OLD_CARD,
            points(cards, _card, held.cores),
        ),
    )
    own = (
        family(
            "GPUDeviceSharedNum",
            "Containers that share a card",
            _OLD_CARD,
            points(cards, _card, held.containers),
        ),
        family(
            "nodeGPUOverview",
            "Memory of a card that claims have, in bytes",
            "zone nodeid deviceuuid deviceidx devicecores devicememorylimit devicetype",
            points(cards, _overview, held.memory),
        ),
        family(
            "nodeGPUMemoryPercentage",
            "Part of a card's memory that claims have, 0 to 1",
            "zone nodeid deviceuuid deviceidx",
            points(cards, lambda card: _card(card)[:-1], held.memory_ratio),
        ),
        family(
            "nodeGPUMigInstance",
            "MIG instances; none are offered",
            "zone nodeid deviceuuid deviceidx migname",
        ),
        summed(
            "vGPUMemoryAllocated",
            "Memory of a card that a container's claims have, in bytes",
            _OLD_CONTAINER,
            _of_containers(account, _share_memory),
        ),
        summed(
            "vGPUCoreAllocated",
            "Compute of a card that a container's claims have, 0 to 100",
            _OLD_CONTAINER,
            _of_containers(account, _share_cores),
        ),
    )
    return own if without_cards else shared_with_dra + own


class _By:
    """Values of cards, by what claims have of them."""

    def __init__(self, account: Account) -> None:
        self._held = account.held

    def _of(self, card: Card) -> Held:
        return self._held[card.id]

    def memory(self, card: Card) -> float:
        return self._of(card).memory_bytes

    def cores(self, card: Card) -> float:
        return self._of(card).cores

    def containers(self, card: Card) -> float:
        return self._of(card).containers

    def core_percent(self, card: Card) -> float:
        return _percent(self._of(card).cores, card.cores)

    def memory_ratio(self, card: Card) -> float:
        return self._of(card).memory_bytes / card.memory_bytes if card.memory_bytes else 0.0


def _card(card: Card) -> Labels:
    return (ZONE, card.node, card.uuid, card.index, card.type)


def _card_with_cores(card: Card) -> Labels:
    return (ZONE, card.node, card.uuid, card.index, str(card.cores), card.type)


def _overview(card: Card) -> Labels:
    limit_mib = str(card.memory_bytes // MIB)
    return (ZONE, card.node, card.uuid, card.index, str(card.cores), limit_mib, card.type)


def _memory_limit(card: Card) -> float:
    return card.memory_bytes


def _core_limit(card: Card) -> float:
    return _percent(card.cores, card.cores)


def _cores(card: Card) -> float:
    return card.cores


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


def _share_memory(share: Share) -> float:
    return share.memory_bytes


def _share_cores(share: Share) -> float:
    return share.cores


def _share_core_percent(share: Share) -> float:
    return _percent(share.cores, share.card.cores)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
