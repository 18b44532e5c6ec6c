"""Requests that are on one card, whichever it will be, and what init containers need of it.

An init container has ended when the containers start, and when a later sidecar does, so it uses
theirs; budgets of one card add up in a container. So the card gives the larger of what runs
together and of the largest init container, as HAMi counts it: what is missing to the latter, one
of the requests is larger.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from casaba.model.quantity import MIB
from casaba.model.slice_parameters import CorePolicy
from casaba.policy.convert.demands import Demand
from casaba.policy.convert.needs import FULL_PERCENT, CardNeed, Filling, memory_on_card
from casaba.policy.convert.pods import Role


@dataclass(frozen=True, kw_only=True, eq=False)
class Slot:
    """A request to be, for what its owner needs of a card."""

    number: int
    """Its place among all requests of the pod."""
    owner: Demand

    @property
    def need(self) -> CardNeed:
        """What the owner asks for."""
        return self.owner.need

    @property
    def is_of_sidecar(self) -> bool:
        """Whether it is in use before the containers start."""
        return self.owner.container.role is Role.SIDECAR

    def is_open_to(self, init: Demand) -> bool:
        """Whether nobody else uses it yet while this init container runs."""
        return not self.is_of_sidecar or self.owner.container.index > init.container.index


class Lack(NamedTuple):
    """What an init container does not find."""

    memory_mib: int
    cores_percent: int


class _Duty(NamedTuple):
    """What all init containers need that use the same slots."""

    init: Demand
    """One of them."""
    need: CardNeed


def is_capped(need: CardNeed, owner: Demand) -> bool:
    """Whether there is time of the card that the owner's request does not give."""
    policy = owner.parameters.core_policy
    return 0 < need.cores_percent < FULL_PERCENT and policy is not CorePolicy.DISABLE


@dataclass(frozen=True, eq=False)
class OneCard:
    """Slots of one card. Each is itself only."""

    slots: tuple[Slot, ...]
    duties: tuple[_Duty, ...] = ()

    def open_to(self, init: Demand) -> tuple[Slot, ...]:
        """What the init container may use."""
        return tuple([slot for slot in self.slots if slot.is_open_to(init)])

    def with_init(self, init: Demand) -> "OneCard":
        """The card, which also has enough for this init container."""
        return _card(self.slots, [*self.duties, _Duty(init, init.need)])

    def joined(self, other: "OneCard") -> "OneCard":
        """This and the other as one card."""
        return _card((*self.slots, *other.slots), [*self.duties, *other.duties])

    def memory_mib(self, slots: Sequence[Slot], size: int) -> int:
        """What these have of a card of this size (bytes)."""
        return memory_on_card([self.need(slot) for slot in slots], size)

    def used_by(self, init: Demand) -> tuple[Slot, ...]:
        """One slot that is enough by itself, with or without a cap as asked for; else all."""
        slots = self.open_to(init)
        enough = [slot for slot in slots if self.need(slot).covers(init.need)]
        capped = is_capped(init.need, init)
        alike = [it for it in enough if is_capped(self.need(it), it.owner) == capped]
        return tuple([*alike, *enough][:1]) or slots

    def lack(self, init: Demand, sizes: Iterable[int]) -> Lack:
        """What is missing to an init container, on the worst of cards of these sizes (bytes)."""
        slots = self.open_to(init)
        missing = [init.need.on_card(size) - self.memory_mib(slots, size) for size in sizes]
        cores = _missing_cores(slots, init.need)
        return Lack(max(0, *missing), max(0, cores - self._more_cores))

    def fits(self, sizes: Iterable[int]) -> bool:
        """Whether a card of one of these sizes has all of it."""
        cores = sum([slot.need.cores_percent for slot in self.slots]) + self._more_cores
        return cores <= FULL_PERCENT and any(
            self.memory_mib(self.slots, size) * MIB <= size for size in sizes
        )

    @property
    def is_within_init(self) -> bool:
        """Whether an init container alone needs as much in MiB: then every card has it or none."""
        needs = [*(slot.need for slot in self.slots), *(duty.need for duty in self.duties)]
        most_mib = max((duty.need.memory_mib for duty in self.duties), default=0)
        return (
            not any(need.memory_percent for need in needs)
            and sum([slot.need.memory_mib for slot in self.slots]) <= most_mib
        )

    def need(self, slot: Slot) -> CardNeed:
        """What the slot's request is for in the end."""
        return self._grown if slot is self._growing else slot.need

    @cached_property
    def _growing(self) -> Slot:
        """The largest one that is open to every init container to which one is."""
        always = [slot for slot in self.slots if not slot.is_of_sidecar]
        if not always:
            return max(self.slots, key=lambda slot: slot.owner.container.index)
        return max(always, key=lambda slot: (slot.need.memory_percent, slot.need.memory_mib))

    @cached_property
    def _grown(self) -> CardNeed:
        """What the growing one needs to be, so that all init containers have enough."""
        need, fillings = self._growing.need, list[Filling]()
        for duty in self.duties:
            others = tuple([it.need for it in self.open_to(duty.init) if it is not self._growing])
            if not others:
                need = need.merged(duty.need)
            elif not any(one.covers_memory(duty.need) for one in (need, *others)):
                fillings.append(Filling(total=duty.need, others=others))
        mib = [it.on_card(0) for it in fillings if not it.depends_on_card]
        return replace(
            need,
            memory_mib=max(need.memory_mib, *mib, 0),
            cores_percent=self._growing.need.cores_percent + self._more_cores,
            fillings=tuple(it for it in fillings if it.depends_on_card),
        )

    @cached_property
    def _more_cores(self) -> int:
        return max(
            (_missing_cores(self.open_to(it.init), it.need) for it in self.duties), default=0
        )


def _card(slots: tuple[Slot, ...], duties: Iterable[_Duty]) -> OneCard:
    """Init containers to which the same slots are open need the largest of each amount."""
    by_slots: dict[tuple[int, ...], _Duty] = {}
    for duty in duties:
        numbers = tuple([slot.number for slot in slots if slot.is_open_to(duty.init)])
        known = by_slots.get(numbers, duty)
        by_slots[numbers] = _Duty(known.init, known.need.merged(duty.need))
    return OneCard(slots, tuple(by_slots.values()))


def _missing_cores(slots: Sequence[Slot], need: CardNeed) -> int:
    """One without cores has no cap, and none is given to it."""
    cores = [slot.need.cores_percent for slot in slots]
    return max(0, need.cores_percent - sum(cores)) if all(cores) else 0
