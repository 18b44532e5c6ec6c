"""The names of hami-dra-monitor: cards and pods; ratios are 0 to 1, in the old names 0 to 100."""

from collections.abc import Callable, Iterator

from casaba.model.quantity import MIB
from casaba.policy.allocation_metrics.account import Account, Share
from casaba.policy.allocation_metrics.cards import Card
from casaba.policy.allocation_metrics.families import Labels, family, points, summed
from casaba.wire.exposition import Family, Sample

PERCENT = 100

_CARD = "node device_uuid device_index device_name device_type"
_POD = "node device_uuid namespace pod"
_OLD_CARD = "nodeid deviceuuid deviceidx devicename devicebrand deviceproductname"
_OLD_POD = f"{_OLD_CARD} podnamespace podname"


def hami_dra_families(account: Account) -> tuple[Family, ...]:
    """The newer names."""
    cards, held = account.cards, account.held
    return (
        family(
            "hami_dra_gpu_core_limit_ratio",
            "Compute of a card, 0 to 1",
            _CARD,
            points(cards, _card, lambda card: card.cores / PERCENT),
        ),
        family(
            "hami_dra_gpu_core_allocated_ratio",
            "Compute of a card that claims have, 0 to 1",
            _CARD,
            points(cards, _card, lambda card: held[card.id].cores / PERCENT),
        ),
        family(
            "hami_dra_gpu_memory_limit_bytes",
            "Memory of a card",
            _CARD,
            points(cards, _card, lambda card: card.memory_bytes),
        ),
        family(
            "hami_dra_gpu_memory_allocated_bytes",
            "Memory of a card that claims have",
            _CARD,
            points(cards, _card, lambda card: held[card.id].memory_bytes),
        ),
        summed(
            "hami_dra_vgpu_core_allocated_ratio",
            "Compute of a card that a pod's claims have, 0 to 1",
            _POD,
            _of_pods(account, _pod, lambda share: share.cores / PERCENT),
        ),
        summed(
            "hami_dra_vgpu_memory_allocated_bytes",
            "Memory of a card that a pod's claims have",
            _POD,
            _of_pods(account, _pod, lambda share: share.memory_bytes),
        ),
    )


def legacy_dra_families(account: Account) -> tuple[Family, ...]:
    """The older names: memory in MiB, compute 0 to 100."""
    cards, held = account.cards, account.held
    return (
        family(
            "GPUDeviceCoreLimit",
            "Compute of a card, 0 to 100",
            _OLD_CARD,
            points(cards, _old_card, lambda card: card.cores),
        ),
        family(
            "GPUDeviceMemoryLimit",
            "Memory of a card in MiB",
            _OLD_CARD,
            points(cards, _old_card, lambda card: card.memory_bytes / MIB),
        ),
        family(
            "GPUDeviceCoreAllocated",
            "Compute of a card that claims have, 0 to 100",
            _OLD_CARD,
            points(cards, _old_card, lambda card: held[card.id].cores),
        ),
        family(
            "GPUDeviceMemoryAllocated",
            "Memory of a card that claims have, in MiB",
            _OLD_CARD,
            points(cards, _old_card, lambda card: held[card.id].memory_bytes / MIB),
        ),
        summed(
            "vGPUDeviceCoreAllocated",
            "Compute of a card that a pod's claims have, 0 to 100",
            _OLD_POD,
            _of_pods(account, _old_pod, lambda share: share.cores),
        ),
        summed(
            "vGPUDeviceMemoryAllocated",
            "Memory of a card that a pod's claims have, in MiB",
            _OLD_POD,
            _of_pods(account, _old_pod, lambda share: share.memory_bytes / MIB),
        ),
    )


def _of_pods(
    account: Account, labels: Callable[[Share, str], Labels], value: Callable[[Share], float]
) -> Iterator[Sample]:
    for share in account.shares:
        for user in share.users:
            yield labels(share, user.pod), value(share)


def _card(card: Card) -> Labels:
    return (card.node, card.uuid, card.index, card.id.device, card.type)


def _pod(share: Share, pod: str) -> Labels:
    return (share.card.node, share.card.uuid, share.namespace, pod)


def _old_card(card: Card) -> Labels:
    return (card.node, card.uuid, card.index, card.id.device, card.brand, card.product)


def _old_pod(share: Share, pod: str) -> Labels:
    return (*_old_card(share.card), share.namespace, pod)
