"""Our own names; ratios are 0 to 1."""

from casaba.policy.allocation_metrics.account import Account
from casaba.policy.allocation_metrics.cards import Card
from casaba.policy.allocation_metrics.families import Labels, family, points
from casaba.wire.exposition import Family

_CARD = "node device_uuid device_index device_type"


def casaba_families(account: Account) -> tuple[Family, ...]:
    """Claims by state, and what each card has left."""
    cards = account.cards

    def free_memory(card: Card) -> float:
        return max(0, card.memory_bytes - account.held[card.id].memory_bytes)

    def free_cores(card: Card) -> float:
        left = max(0, card.cores - account.held[card.id].cores)
        return left / card.cores if card.cores else 0.0

    def fragmentation(card: Card) -> float:
        memory = free_memory(card) / card.memory_bytes if card.memory_bytes else 0.0
        cores = free_cores(card)
        more = max(memory, cores)
        return 1 - min(memory, cores) / more if more else 0.0

    return (
        family(
            "casaba_claims",
            "ResourceClaims of our class or driver by state: unused (no pod asks for it), "
            "pending (a pod waits for it), allocated (in nobody's use), reserved (for a pod)",
            "state",
            (((state,), float(count)) for state, count in account.claims.items()),
        ),
        family(
            "casaba_card_free_memory_bytes",
            "Memory of a card that no claim has",
            _CARD,
            points(cards, _card, free_memory),
        ),
        family(
            "casaba_card_free_cores_ratio",
            "Part of a card's compute that no claim has, 0 to 1",
            _CARD,
            points(cards, _card, free_cores),
        ),
        family(
            "casaba_card_fragmentation_ratio",
            "Of what is free of a card: the part of the more plentiful (memory or compute) for "
            "which none of the other is left, 0 to 1",
            _CARD,
            points(cards, _card, fragmentation),
        ),
        family(
            "casaba_lost_shares",
            "Shares that claims have of cards that no ResourceSlice shows",
            "",
            [((), float(account.lost_shares))],
        ),
    )


def _card(card: Card) -> Labels:
    return (card.node, card.uuid, card.index, card.type)
