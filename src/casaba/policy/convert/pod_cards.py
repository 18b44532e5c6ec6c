"""The cards of a pod, while it is decided which container uses which."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from casaba.policy.convert.demands import MAX_CARDS, Demand
from casaba.policy.convert.needs import CardNeed
from casaba.policy.convert.one_card import Lack, OneCard, Slot, is_capped
from casaba.policy.convert.pods import Role, described
from casaba.policy.convert.refusals import PodRefused

UNKNOWN_SIZE_BYTES = 1 << 44
"""Of a card that is not visible yet: more than any has."""

_Cost = tuple[int, ...]


class Use(NamedTuple):
    """A container and the slots that it uses of each of its cards."""

    demand: Demand
    cards: tuple[tuple[Slot, ...], ...]


class PodCards:
    """Slots, and which of them are on one card or on different ones."""

    def __init__(self, sizes: Collection[int], *, may_join: bool) -> None:
        self._sizes = tuple(sizes)
        self._may_join = may_join
        self.slots: list[Slot] = []
        """By number."""
        self._cards: list[OneCard] = []
        """For each slot the card that it is on."""
        self._uses: list[tuple[Demand, list[int]]] = []
        """For each card of a container one slot that is on it."""
        self._inits: list[tuple[Demand, list[int]]] = []
        """Those of the uses for which cards were looked for."""
        self._sidecars: list[Slot] = []
        """One of each."""
        self._apart: dict[tuple[int, ...], None] = {}

    def add(self, demand: Demand) -> None:
        """Slots of its own."""
        slots = [self._new_slot(demand) for _ in range(demand.count)]
        self._use(demand, slots)
        if demand.container.role is Role.SIDECAR:
            self._sidecars += [self.slots[slot] for slot in slots[:1]]

    def reuse(self, init: Demand) -> None:
        """Cards of others as far as there are, then new ones, which other init containers use."""
        if (known := self._as_before(init)) is not None:
            self._use(init, known)
            return
        slots = [card.open_to(init)[0].number for card in self._best(init)]
        while self._may_join and (joined := self._with_another(slots, init)):
            self._put(joined)
        while len(slots) < init.count:
            slots.append(self._new_slot(init))
        for slot in slots:
            self._put(self._cards[slot].with_init(init))
        self._use(init, slots)
        self._inits.append((init, slots))

    def need(self, slot: Slot) -> CardNeed:
        """What its request is for."""
        return self._cards[slot.number].need(slot)

    def uses(self) -> tuple[Use, ...]:
        """What each container uses."""
        return tuple([Use(demand, self._used(demand, slots)) for demand, slots in self._uses])

    @property
    def shared(self) -> tuple[OneCard, ...]:
        """Those of which an init container uses several slots together."""
        together = [slots[0] for use in self.uses() for slots in use.cards if len(slots) > 1]
        return tuple(dict.fromkeys(self._cards[slot.number] for slot in together))

    @property
    def joined(self) -> tuple[OneCard, ...]:
        """Those with several slots; what was added later may have made one of them enough."""
        return tuple([card for card in self._distinct() if len(card.slots) > 1])

    @property
    def all_fit(self) -> bool:
        """Whether there are cards for what was joined, also after what was added later."""
        return all(self._fits(card) for card in self.joined)

    @property
    def apart(self) -> tuple[tuple[int, ...], ...]:
        """Groups of slots that must be on different cards."""
        return tuple(self._apart)

    def _used(self, demand: Demand, slots: Iterable[int]) -> tuple[tuple[Slot, ...], ...]:
        if not demand.is_init:
            return tuple([(self.slots[slot],) for slot in slots])
        return tuple([self._cards[slot].used_by(demand) for slot in slots])

    def _as_before(self, init: Demand) -> list[int] | None:
        """The cards of another init container that needs no less, if there is one."""
        for other, slots in self._inits:
            alike = is_capped(other.need, other) == is_capped(init.need, init)
            enough = len(slots) == init.count and other.need.merged(init.need) == other.need
            if alike and enough and self._same_open(other, init):
                return slots
        return None

    def _same_open(self, one: Demand, other: Demand) -> bool:
        return all(slot.is_open_to(one) == slot.is_open_to(other) for slot in self._sidecars)

    def _best(self, init: Demand) -> list[OneCard]:
        """The cards on which least is missing; of one container if those are no worse."""
        costs = {card: self._cost(card, init) for card in self._distinct() if card.open_to(init)}
        groups = [*([self._cards[slot] for slot in group] for group in self._apart), list(costs)]
        found = [[card for card in group if card in costs] for group in groups]
        enough = [
            sorted(cards, key=costs.__getitem__)[: init.count]
            for cards in found
            if len(cards) >= init.count
        ]
        return min(enough, key=_sum_of(costs), default=list(costs))

    def _cost(self, card: OneCard, init: Demand) -> _Cost:
        """What is missing; then a cap where none is asked for, or none where one is."""
        lack, slots = self._lack(card, init), card.open_to(init)
        differs = all(is_capped(it.need, it.owner) for it in slots) != is_capped(init.need, init)
        return (lack.memory_mib > 0, differs, lack.cores_percent > 0, *lack)

    def _with_another(self, slots: Sequence[int], init: Demand) -> OneCard | None:
        """One of these cards, on which something is missing, with the one that helps it best."""
        chosen = [self._cards[slot] for slot in slots]
        others = [it for it in self._distinct() if it not in chosen and it.open_to(init)]
        for card in sorted(chosen, key=lambda it: self._lack(it, init), reverse=True):
            lack = self._lack(card, init)
            helping = [card.joined(it) for it in others if self._may_help(card, it, init, lack)]
            fitting = [it for it in helping if self._fits(it.with_init(init))]
            if fitting:
                return min(fitting, key=lambda it: self._cost_of_joining(it, init))
        return None

    def _may_help(self, card: OneCard, other: OneCard, init: Demand, lack: Lack) -> bool:
        """One without cores has no cap, which does not help an init container to its own."""
        capped = all(slot.need.cores_percent for slot in other.open_to(init))
        helps = lack.memory_mib > 0 or (lack.cores_percent > 0 and capped)
        return helps and not self._are_apart(card, other)

    def _cost_of_joining(self, joined: OneCard, init: Demand) -> _Cost:
        """Best is the smallest that is enough, else the one on which least is missing."""
        size = max(self._sizes, default=UNKNOWN_SIZE_BYTES)
        return (*self._lack(joined, init), joined.memory_mib(joined.slots, size))

    def _fits(self, card: OneCard) -> bool:
        """Whether it takes no card away that the init container could have."""
        return card.fits(self._sizes) if self._sizes else card.is_within_init

    def _lack(self, card: OneCard, init: Demand) -> Lack:
        sizes = [size for size in self._sizes if init.need.fits(size)]
        return card.lack(init, sizes or self._sizes or (UNKNOWN_SIZE_BYTES,))

    def _are_apart(self, one: OneCard, other: OneCard) -> bool:
        groups = ([self._cards[slot] for slot in group] for group in self._apart)
        return any(one in cards and other in cards for cards in groups)

    def _distinct(self) -> Iterable[OneCard]:
        return dict.fromkeys(self._cards)

    def _put(self, card: OneCard) -> None:
        for slot in card.slots:
            self._cards[slot.number] = card

    def _use(self, demand: Demand, slots: list[int]) -> None:
        self._uses.append((demand, slots))
        if len(slots) > 1:
            self._apart[tuple(slots)] = None

    def _new_slot(self, demand: Demand) -> int:
        if len(self.slots) == MAX_CARDS:
            raise PodRefused(
                f"{described(demand.container)}: the pod asks for more than the {MAX_CARDS} cards "
                "that one claim can have; put fewer GPU containers into the pod"
            )
        self.slots.append(Slot(number=len(self.slots), owner=demand))
        self._cards.append(OneCard((self.slots[-1],)))
        return len(self.slots) - 1


def _sum_of(costs: dict[OneCard, _Cost]) -> Callable[[list[OneCard]], _Cost]:
    """What a list of cards costs."""
    return lambda cards: tuple(map(sum, zip(*(costs[card] for card in cards), strict=True)))
