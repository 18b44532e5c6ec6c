"""Which container uses which request: one request stands for a part of one card.

Containers and sidecars run together, so each has requests of its own. An init container has ended
when the containers start: it uses theirs. The request grows to the larger of both where it must;
in sum the pod holds the maximum, as HAMi counts it, not the sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from casaba.model.slice_parameters import UNSAID, SliceParameters
from casaba.policy.convert.demands import MAX_CARDS, Demand
from casaba.policy.convert.needs import CardNeed
from casaba.policy.convert.pods import Role, described
from casaba.policy.convert.refusals import PodRefused, warning
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
    """For each demand the names of its requests, as many as it wants cards."""
    warnings: tuple[str, ...]

    @property
    def different(self) -> tuple[tuple[str, ...], ...]:
        """Groups of requests that must be different cards; none is a part of another."""
        groups = {frozenset(names): names for _, names in self.uses if len(names) > 1}
        return tuple(
            names for group, names in groups.items() if not any(group < other for other in groups)
        )


def card_requests(demands: Sequence[Demand]) -> CardRequests:
    """The requests for what containers ask for; raises PodRefused for more than a claim takes."""
    table = _Table()
    for demand in sorted(demands, key=lambda one: one.container.role is Role.SIDECAR):
        if not demand.is_init:
            table.add(demand)
    for demand in demands:
        if demand.is_init:
            table.reuse(demand)
    return table.result()


@dataclass
class _Slot:
    owner: Demand
    need: CardNeed


class _Table:
    """The requests, while they are given out; a slot is known by its index."""

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._uses: list[tuple[Demand, list[int]]] = []
        self._warnings: dict[str, None] = {}
        self._groups: list[list[int]] = []
        """What init containers may use: the slots of each container, then their own."""
        self._init_group: list[int] = []

    def add(self, demand: Demand) -> None:
        """Slots of its own."""
        slots = [self._new_slot(demand) for _ in range(demand.count)]
        self._uses.append((demand, slots))
        if demand.container.role is Role.APP:
            self._groups.append(slots)

    def reuse(self, demand: Demand) -> None:
        """Slots of others as far as there are, then new ones, which later init containers use."""
        slots = self._free_slots(demand)
        for slot in slots:
            self._grow(slot, demand)
        while len(slots) < demand.count:
            slots.append(self._new_slot(demand))
            self._init_group.append(slots[-1])
        self._uses.append((demand, slots))

    def result(self) -> CardRequests:
        names = request_names([slot.owner.container.name for slot in self._slots])
        return CardRequests(
            requests=tuple(
                CardRequest(name=name, need=slot.need, parameters=slot.owner.parameters)
                for name, slot in zip(names, self._slots, strict=True)
            ),
            uses=tuple(
                (demand, tuple(names[slot] for slot in slots)) for demand, slots in self._uses
            ),
            warnings=tuple(self._warnings),
        )

    def _free_slots(self, demand: Demand) -> list[int]:
        """Of one container if it has enough: those are different cards already."""
        groups = [*self._groups, self._init_group]
        enough = [self._best(group, demand) for group in groups if len(group) >= demand.count]
        if enough:
            return min(enough, key=lambda slots: self._growth(slots, demand))
        return [slot for group in groups for slot in group][: demand.count]

    def _best(self, group: Sequence[int], demand: Demand) -> list[int]:
        return sorted(group, key=lambda slot: self._growth([slot], demand))[: demand.count]

    def _growth(self, slots: Sequence[int], demand: Demand) -> tuple[int, int, int]:
        """Slots that must grow, and how large they are: the less, the better."""
        growing = [slot for slot in slots if not self._slots[slot].need.covers(demand.need)]
        needs = [self._slots[slot].need for slot in slots]
        return (
            len(growing),
            -sum(need.memory_percent for need in needs) if growing else 0,
            -sum(need.memory_mib for need in needs) if growing else 0,
        )

    def _grow(self, index: int, demand: Demand) -> None:
        slot, container = self._slots[index], demand.container
        if demand.parameters not in (UNSAID, slot.owner.parameters):
            self._warn(
                f"{described(container)} has the priority and core policy of "
                f"{described(slot.owner.container)}, whose card it uses"
            )
        if slot.need.covers(demand.need):
            return
        before, slot.need = slot.need, slot.need.merged(demand.need)
        if not slot.owner.is_init and slot.need.exceeds(before):
            self._warn(
                f"{described(slot.owner.container)} may use {slot.need}, because "
                f"{described(container)} needs them of the same card"
            )

    def _warn(self, text: str) -> None:
        self._warnings[warning(text)] = None

    def _new_slot(self, demand: Demand) -> int:
        if len(self._slots) == MAX_CARDS:
            raise PodRefused(
                f"{described(demand.container)}: the pod asks for more than the {MAX_CARDS} cards "
                "that one claim can have; put fewer GPU containers into the pod"
            )
        self._slots.append(_Slot(owner=demand, need=demand.need))
        return len(self._slots) - 1


def whole_cards(demand: Demand) -> Demand:
    """The same demand for cards that nobody else may use."""
    return replace(demand, need=replace(demand.need, memory_percent=100))
