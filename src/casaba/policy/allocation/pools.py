"""Slices gathered into pools, as far as a node can reach them.

A pool is the newest generation that was seen of it. It can be used if all its slices are there
and agree with each other (KEP 4381, KEP 4815).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from casaba.policy.allocation.behaviour import Behaviour
from casaba.policy.allocation.nodes import CandidateNode, reaches
from casaba.policy.allocation.outcome import DeviceId
from casaba.wire.kubernetes import CounterSet, Device, ResourceSlice

PoolId = tuple[str, str]
"""Driver and name of the pool."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A pool as one node sees it."""

    driver: str
    name: str
    slices: tuple[ResourceSlice, ...] = ()
    """Slices with devices that the node can reach, in the order in which they are tried."""
    elsewhere: tuple[ResourceSlice, ...] = ()
    """Other slices; their devices may hold counters."""
    counter_sets: dict[str, CounterSet] = field(default_factory=dict)
    incomplete: bool = False
    problem: str = ""
    """Why the pool is invalid; empty if it isn't."""

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A device with the slice and the pool that it comes from."""

    id: DeviceId
    device: Device
    slice: ResourceSlice
    pool: Pool


def candidates(pool: Pool) -> Iterable[Candidate]:
    """The devices of a pool, in the order in which they are tried."""
    for slice_ in pool.slices:
        for device in slice_.spec.devices:
            identity = DeviceId(pool.driver, pool.name, device.name)
            yield Candidate(id=identity, device=device, slice=slice_, pool=pool)


def gathered(
    slices: Sequence[ResourceSlice], node: CandidateNode, behaviour: Behaviour
) -> tuple[Pool, ...]:
    """The pools that matter for a node, in the order in which they are tried."""
    reachable: dict[PoolId, list[ResourceSlice]] = {}
    for slice_ in slices:
        if _matters(slice_, node):
            _add(reachable, slice_)
    pools = [
        pool
        for identity, members in reachable.items()
        if (pool := _pool(identity, members, slices, behaviour)) is not None
    ]
    if not behaviour.sorted_order:
        return tuple(sorted(pools, key=_waits_for_conditions))
    return tuple(sorted(pools, key=lambda p: (_waits_for_conditions(p), p.driver, p.name)))


def newest(slices: Iterable[ResourceSlice]) -> dict[PoolId, list[ResourceSlice]]:
    """The slices of each pool's newest generation."""
    pools: dict[PoolId, list[ResourceSlice]] = {}
    for slice_ in slices:
        _add(pools, slice_)
    return pools


def _matters(slice_: ResourceSlice, node: CandidateNode) -> bool:
    """Counters matter wherever the pool's devices are."""
    spec = slice_.spec
    if spec.shared_counters:
        return True
    if spec.per_device_node_selection:
        return any(device_reaches(device, node) for device in spec.devices)
    return reaches(node, spec.node_name, spec.all_nodes, spec.node_selector)


def device_reaches(device: Device, node: CandidateNode) -> bool:
    """Whether a device that says itself where it can be used, can be used on the node."""
    return reaches(node, device.node_name, device.all_nodes, device.node_selector)


def _add(pools: dict[PoolId, list[ResourceSlice]], slice_: ResourceSlice) -> None:
    identity = (slice_.spec.driver, slice_.spec.pool.name)
    members = pools.setdefault(identity, [])
    if members and slice_.spec.pool.generation < members[0].spec.pool.generation:
        return
    if members and slice_.spec.pool.generation > members[0].spec.pool.generation:
        members.clear()
    members.append(slice_)


def _pool(
    identity: PoolId,
    members: list[ResourceSlice],
    slices: Sequence[ResourceSlice],
    behaviour: Behaviour,
) -> Pool | None:
    """None if slices that the node can't reach show that the pool has been replaced."""
    wanted = members[0].spec.pool.resource_slice_count
    if len(members) == wanted:
        return _built(identity, members, (), behaviour)
    whole = newest(s for s in slices if (s.spec.driver, s.spec.pool.name) == identity)[identity]
    if whole[0].spec.pool.generation > members[0].spec.pool.generation:
        return None
    if len(whole) != wanted and not behaviour.allocates_from_incomplete_pools:
        return Pool(driver=identity[0], name=identity[1], incomplete=True)
    names = {slice_.metadata.name for slice_ in members}
    elsewhere = tuple(slice_ for slice_ in whole if slice_.metadata.name not in names)
    return _built(identity, members, elsewhere, behaviour, incomplete=len(whole) != wanted)


def _built(
    identity: PoolId,
    members: list[ResourceSlice],
    elsewhere: tuple[ResourceSlice, ...],
    behaviour: Behaviour,
    *,
    incomplete: bool = False,
) -> Pool:
    if behaviour.sorted_order:
        members = sorted(members, key=lambda slice_: slice_.metadata.name)
    problem = _problem(members, elsewhere)
    if problem:
        return Pool(driver=identity[0], name=identity[1], problem=problem)
    return Pool(
        driver=identity[0],
        name=identity[1],
        slices=tuple(slice_ for slice_ in members if not slice_.spec.shared_counters),
        elsewhere=elsewhere,
        counter_sets={set_.name: set_ for set_ in _counter_sets(members)},
        incomplete=incomplete,
    )


def _problem(members: list[ResourceSlice], elsewhere: tuple[ResourceSlice, ...]) -> str:
    names = [device.name for slice_ in members for device in slice_.spec.devices]
    if twice := _first_repeated(names):
        return f"duplicate device name {twice}"
    sets = list(_counter_sets(members))
    if twice := _first_repeated([set_.name for set_ in sets]):
        return f"duplicate counter set name {twice}"
    known = {set_.name: set_ for set_ in sets}
    for slice_ in (*members, *elsewhere):
        for device in slice_.spec.devices:
            if problem := _counter_problem(device, known):
                return problem
    return ""


def _counter_problem(device: Device, known: dict[str, CounterSet]) -> str:
    for use in device.consumes_counters:
        if use.counter_set not in known:
            return f"counter set {use.counter_set} not found"
        for name in use.counters:
            if name not in known[use.counter_set].counters:
                return f"counter {name} not found in counter set {use.counter_set}"
    return ""


def _counter_sets(members: Iterable[ResourceSlice]) -> Iterable[CounterSet]:
    return (set_ for slice_ in members for set_ in slice_.spec.shared_counters)


def _first_repeated(names: Sequence[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _waits_for_conditions(pool: Pool) -> bool:
    """Pools with binding conditions come last."""
    return any(device.binding_conditions for s in pool.slices for device in s.spec.devices)
