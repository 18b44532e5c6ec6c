"""Counters that the devices of a pool share, such as the parts of one card (KEP 4815)."""

from collections.abc import Iterator

from casaba.model.quantity import quantity
from casaba.policy.allocation.ledger import Committed
from casaba.policy.allocation.outcome import DeviceId
from casaba.policy.allocation.pools import Candidate, Pool
from casaba.wire.kubernetes import Device

_CounterKey = tuple[str, str]
"""Name of the counter set and of the counter."""
_Nanos = dict[_CounterKey, int]


class CounterAccount:
    """What is left of the pools' counters while a solution is searched.

    Kubernetes keeps the account by the pool's name alone: pools of two drivers with one name are
    counted together, against the counters of whichever is looked at first.
    """

    def __init__(self, committed: Committed) -> None:
        self._committed = committed
        self._available: dict[str, _Nanos] = {}
        self._taken: dict[str, _Nanos] = {}

    def take(self, candidate: Candidate) -> str:
        """Takes what the device needs; says which counter lacks, and takes nothing, otherwise."""
        pool = candidate.pool
        if pool.name not in self._available:
            self._available[pool.name] = _left(pool, self._committed)
        self._change(candidate, 1)
        taken = self._taken[pool.name]
        for (set_, counter), left in self._available[pool.name].items():
            if taken.get((set_, counter), 0) > left:
                self._change(candidate, -1)
                return f"counter {counter} of {set_} is used up by devices that overlap with it"
        return ""

    def give_back(self, candidate: Candidate) -> None:
        """Undoes a `take` that succeeded."""
        self._change(candidate, -1)

    def _change(self, candidate: Candidate, sign: int) -> None:
        taken = self._taken.setdefault(candidate.pool.name, {})
        for key, nanos in _uses(candidate.device):
            taken[key] = taken.get(key, 0) + sign * nanos


def _left(pool: Pool, committed: Committed) -> _Nanos:
    """May be negative, when a pool was published anew with less."""
    left = {
        (set_.name, name): quantity(counter.value).nanos
        for set_ in pool.counter_sets.values()
        for name, counter in set_.counters.items()
    }
    for slice_ in (*pool.slices, *pool.elsewhere):
        for device in slice_.spec.devices:
            if committed.holds(DeviceId(pool.driver, pool.name, device.name)):
                for key, nanos in _uses(device):
                    left[key] = left.get(key, 0) - nanos
    return left


def _uses(device: Device) -> Iterator[tuple[_CounterKey, int]]:
    for use in device.consumes_counters:
        for name, counter in use.counters.items():
            yield (use.counter_set, name), quantity(counter.value).nanos
