"""What a person should know of init containers that use the cards of others."""

from collections.abc import Iterable, Iterator, Sequence

from casaba.model.slice_parameters import UNSAID
from casaba.policy.convert.demands import Demand
from casaba.policy.convert.needs import FULL_PERCENT
from casaba.policy.convert.one_card import Slot, is_capped
from casaba.policy.convert.pod_cards import PodCards, Use
from casaba.policy.convert.pods import described
from casaba.policy.convert.refusals import warning

_NAMED = 3


def init_warnings(cards: PodCards) -> tuple[str, ...]:
    """Each once: other parameters and caps, larger shares, shares that are bound to one card."""
    inits = [use for use in cards.uses() if use.demand.is_init]
    inits.sort(key=lambda use: use.demand.container.index)
    told = [text for use in inits for text in _of_use(use, cards)]
    told += [text for slot in cards.slots for text in _of_growth(slot, inits, cards)]
    told += [_of_one_card(card.slots, inits) for card in cards.shared]
    return tuple(dict.fromkeys(warning(text) for text in told))


def _of_use(use: Use, cards: PodCards) -> Iterator[str]:
    """What an init container has otherwise than asked for."""
    init = use.demand
    for slots in use.cards:
        for owner in [slot.owner for slot in slots if slot.owner is not init]:
            if init.parameters not in (UNSAID, owner.parameters):
                yield (
                    f"{described(init.container)} has the priority and core policy of "
                    f"{described(owner.container)}, whose card it uses"
                )
        yield from _of_cap(init, slots, cards)


def _of_cap(init: Demand, slots: Sequence[Slot], cards: PodCards) -> Iterator[str]:
    """One without a cap makes that all of them are none; else caps add up."""
    free = [slot for slot in slots if not is_capped(cards.need(slot), slot.owner)]
    cores = sum([cards.need(slot).cores_percent for slot in slots])
    whose = [it.owner.container for it in free or slots if it.owner is not init]
    is_free = bool(free) or cores >= FULL_PERCENT
    if is_capped(init.need, init) and is_free:
        card = (
            f"the card of {described(whose[0])}" if whose else "a card with other init containers"
        )
        yield (
            f"{described(init.container)} is not capped at {init.need.cores_percent} cores: it "
            f"uses {card}{', which has no cap' if free else ''}"
        )
    if not is_capped(init.need, init) and whose and not is_free:
        yield (
            f"{described(init.container)} is capped at {cores} cores, as {described(whose[0])}, "
            "whose card it uses"
        )


def _of_growth(slot: Slot, inits: Iterable[Use], cards: PodCards) -> Iterator[str]:
    """What a container has more than it asks for, in the end."""
    need, more = cards.need(slot), []
    if need.memory != slot.need.memory:
        more.append(f"may use {need.memory}")
    if need.cores_percent != slot.need.cores_percent:
        capped = is_capped(need, slot.owner)
        more.append(f"{'is capped at' if capped else 'has'} {need.cores_percent} cores")
    if more and not slot.owner.is_init:
        users = [it.demand for it in inits if any(slot in slots for slots in it.cards)]
        because = [it for it in users if not slot.need.covers(it.need)]
        yield (
            f"{described(slot.owner.container)} {' and '.join(more)}, because "
            f"{_names(because)} {_need(because)} so much of the same card"
        )


def _of_one_card(slots: Sequence[Slot], inits: Iterable[Use]) -> str:
    owners = _names([slot.owner for slot in slots])
    numbers = {slot.number for slot in slots}
    users = [
        use.demand
        for use in inits
        if any(len(used) > 1 and numbers >= {one.number for one in used} for used in use.cards)
    ]
    return (
        f"{owners} have to be on one card, because {_names(users)} {_need(users)} more of it than "
        "any of them has"
    )


def _need(demands: Sequence[Demand]) -> str:
    return "needs" if len(demands) < 2 else "need"


def _names(demands: Sequence[Demand]) -> str:
    names = list(dict.fromkeys(described(one.container) for one in demands))
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    *first, last = [*names[:_NAMED], *more] or ["an init container"]
    return f"{', '.join(first)} and {last}" if first else last
