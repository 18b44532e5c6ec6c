"""Would these claims fit on this node, with which devices, and if not, why not."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from casaba.model.quantity import Quantity, quantity
from casaba.policy.allocation.behaviour import KUBERNETES_1_36, Behaviour
from casaba.policy.allocation.explanation import pool_reasons
from casaba.policy.allocation.ledger import Committed
from casaba.policy.allocation.nodes import CandidateNode
from casaba.policy.allocation.outcome import (
    Allocated,
    AllocationFailed,
    DeviceId,
    Refused,
)
from casaba.policy.allocation.pools import Pool, gathered, newest
from casaba.policy.allocation.problem import Problem
from casaba.policy.allocation.requests import alternatives
from casaba.policy.allocation.results import allocation_result
from casaba.policy.allocation.search import Search
from casaba.policy.allocation.selectors import Selectors
from casaba.wire.kubernetes import (
    AllocationResult,
    Device,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)

STEP_LIMIT = 1_000_000
"""Devices looked at in one search: some seconds, where the scheduler gives up after ten."""

CANNOT_ALLOCATE = "cannot allocate all claims"
INVALID_POOLS = "invalid resource pools were encountered"


@dataclass(frozen=True, kw_only=True)
class Room:
    """A capacity of a device: all of it, and what no claim has."""

    total: Quantity
    left: Quantity
    """Never negative, also where a device was published anew with less."""


@dataclass(frozen=True, kw_only=True)
class FreeDevice:
    """What is left of a device."""

    id: DeviceId
    device: Device
    slice: ResourceSlice
    whole: bool
    """No claim has it or a share of it."""
    full: bool
    """A claim has all of it, whatever its capacity says."""
    capacity: Mapping[str, Room]


class Allocator:
    """One snapshot of a cluster. Pure: the same questions get the same answers."""

    def __init__(
        self,
        *,
        slices: Sequence[ResourceSlice],
        classes: Mapping[str, DeviceClass],
        allocated: Iterable[ResourceClaim],
        behaviour: Behaviour = KUBERNETES_1_36,
        new_share_id: Callable[[], str],
        step_limit: int = STEP_LIMIT,
    ) -> None:
        """`allocated` may hold claims without an allocation; they count for nothing."""
        self._slices = tuple(slices)
        self._behaviour = behaviour
        self._new_share_id = new_share_id
        self._step_limit = step_limit
        self._selectors = Selectors(classes, behaviour)
        self._committed = Committed(allocated, shares=behaviour.consumable_capacity)

    def allocate(self, node: CandidateNode, claims: Sequence[ResourceClaim]) -> Allocated | Refused:
        """Devices for all claims together on one node, or why there are none.

        Raises AllocationFailed when something is wrong with a claim or class, whatever the node;
        InvalidInput for text that is no quantity.
        """
        problem = self._problem(node, claims)
        self._check_invalid_pools(problem.pools)
        search = Search(problem)
        if not search.run():
            return self._refused(problem, search)
        results = tuple(
            self._result(problem, search, index) for index in range(len(problem.claims))
        )
        return Allocated(results=results)

    def free(self) -> tuple[FreeDevice, ...]:
        """What is left of every device of the newest generation of every pool, by name."""
        pools = newest(self._slices)
        return tuple(
            self._free(DeviceId(*identity, device.name), device, slice_)
            for identity in sorted(pools)
            for slice_ in sorted(pools[identity], key=lambda one: one.metadata.name)
            for device in slice_.spec.devices
        )

    def _problem(self, node: CandidateNode, claims: Sequence[ResourceClaim]) -> Problem:
        return Problem(
            node=node,
            claims=claims,
            requests=tuple(alternatives(claim, index) for index, claim in enumerate(claims)),
            pools=gathered(self._slices, node, self._behaviour),
            committed=self._committed,
            selectors=self._selectors,
            behaviour=self._behaviour,
            step_limit=self._step_limit,
        )

    def _check_invalid_pools(self, pools: tuple[Pool, ...]) -> None:
        invalid = next((pool for pool in pools if pool.problem), None)
        if invalid is not None and self._behaviour.fails_on_invalid_pools:
            raise AllocationFailed(f"pool {invalid.name} is invalid: {invalid.problem}")

    def _result(self, problem: Problem, search: Search, index: int) -> AllocationResult:
        claim = problem.claims[index]
        return allocation_result(
            claim,
            search.taken[index],
            tuple(search.chosen[index, number] for number in range(len(problem.requests[index]))),
            problem.node,
            selectors=self._selectors,
            behaviour=self._behaviour,
            new_share_id=self._new_share_id,
        )

    def _refused(self, problem: Problem, search: Search) -> Refused:
        invalid = any(pool.problem for pool in problem.pools)
        return Refused(
            reason=INVALID_POOLS if invalid else CANNOT_ALLOCATE,
            why=(
                *pool_reasons(problem.pools, problem.node),
                *search.trace.reasons(problem.claims, problem.node),
            ),
        )

    def _free(self, identity: DeviceId, device: Device, slice_: ResourceSlice) -> FreeDevice:
        shares = self._committed.shares(identity)
        rooms = {}
        for name, capacity in device.capacity.items():
            total = quantity(capacity.value)
            used = sum(share[name].nanos for share in shares if name in share)
            rooms[name] = Room(
                total=total, left=Quantity(max(0, total.nanos - used), total.notation)
            )
        return FreeDevice(
            id=identity,
            device=device,
            slice=slice_,
            whole=not self._committed.holds(identity),
            full=identity in self._committed.whole,
            capacity=rooms,
        )
