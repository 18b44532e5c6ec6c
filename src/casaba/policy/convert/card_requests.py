"""Which container uses which request: one request stands for a part of one card.

Containers and sidecars run together, so each has requests of its own. An init container uses
theirs: one that is enough, else several that are then on one card (`one_card`). In sum the pod
holds the maximum, as HAMi counts it, not the sum.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from casaba.model.slice_parameters import SliceParameters
from casaba.policy.convert.demands import Demand
from casaba.policy.convert.init_warnings import init_warnings
from casaba.policy.convert.needs import CardNeed
from casaba.policy.convert.pod_cards import PodCards
from casaba.policy.convert.pods import Role
from casaba.policy.convert.request_names import request_names


@dataclass(frozen=True, kw_only=True)
class CardRequest:
    """A request of the claim, for a part of one card."""

    name: str
    need: CardNeed
    parameters: SliceParameters


@dataclass(frozen=True, kw_only=True)
class CardRequests:
    """All requests of a pod's claim and who uses them."""

    requests: tuple[CardRequest, ...]
    uses: tuple[tuple[Demand, tuple[str, ...]], ...]
    """For each demand the names of its requests: one for each card, or several of one card."""
    same: tuple[tuple[str, ...], ...]
    """Groups of requests that must be one card."""
    different: tuple[tuple[str, ...], ...]
    """Groups of requests that must be different cards; none is a part of another."""
    warnings: tuple[str, ...]


def card_requests(
    demands: Sequence[Demand], sizes: Collection[int] = (), *, may_join: bool = True
) -> CardRequests:
    """The requests for what containers ask for.

    `sizes` are those of the cards that the pod may have, in bytes; without `may_join` no two
    requests are bound to one card. Raises PodRefused for more than a claim takes.
    """
    depends_on_card = any(demand.need.memory_percent for demand in demands)
    known = tuple(sizes) if depends_on_card or not sizes else (max(sizes),)
    cards = _given_out(demands, PodCards(known, may_join=may_join))
    if not cards.joined:
        return _written(cards)
    alone = _given_out(demands, PodCards(known, may_join=False))
    helps = cards.all_fit and len(cards.slots) <= len(alone.slots)
    return _written(cards if helps else alone)


def _given_out(demands: Sequence[Demand], cards: PodCards) -> PodCards:
    """The cards, with all containers on them."""
    for demand in sorted(demands, key=lambda one: one.container.role is Role.SIDECAR):
        if not demand.is_init:
            cards.add(demand)
    for demand in _hard_first(demands):
        cards.reuse(demand)
    return cards


def whole_cards(demand: Demand) -> Demand:
    """The same demand for cards that nobody else may use."""
    return replace(demand, need=replace(demand.need, memory_percent=100))


def _hard_first(demands: Sequence[Demand]) -> list[Demand]:
    """Who needs most, or may use least, comes first: the others find what it was given."""
    sidecars = [it.container.index for it in demands if it.container.role is Role.SIDECAR]

    def key(init: Demand) -> tuple[int, ...]:
        started = sum([index < init.container.index for index in sidecars])
        return (-init.count, -started, -init.need.memory_percent, -init.need.memory_mib)

    return sorted((one for one in demands if one.is_init), key=key)


def _written(cards: PodCards) -> CardRequests:
    """The requests with their names.

    Those of one card come first: the scheduler goes through them in order, and would have to
    try many cards for others again before it finds one that has room for all of these.
    """
    names = request_names([slot.owner.container.name for slot in cards.slots])
    uses = [(use.demand, [slot for slots in use.cards for slot in slots]) for use in cards.uses()]
    shared = [slot for card in cards.shared for slot in card.slots]
    return CardRequests(
        requests=tuple(
            CardRequest(
                name=names[slot.number], need=cards.need(slot), parameters=slot.owner.parameters
            )
            for slot in dict.fromkeys([*shared, *cards.slots])
        ),
        uses=tuple((demand, tuple([names[it.number] for it in used])) for demand, used in uses),
        same=tuple(tuple([names[slot.number] for slot in card.slots]) for card in cards.shared),
        different=_largest([tuple([names[number] for number in group]) for group in cards.apart]),
        warnings=init_warnings(cards),
    )


def _largest(groups: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Those that are no part of another."""
    by_names = {frozenset(names): names for names in groups}
    return tuple(
        names for group, names in by_names.items() if not any(group < other for other in by_names)
    )
