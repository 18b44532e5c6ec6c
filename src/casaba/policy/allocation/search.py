"""The search for devices: depth first, with all ways back, the first solution wins.

Order and rules are those of the allocator of kube-scheduler 1.36 (KEP 4381, 4815, 4816, 5018,
5055, 5075). Inside one request devices are only tried in their order, since another order of the
same devices would be no other solution.
"""

from collections.abc import Generator, Sequence
from enum import Enum, auto

from casaba.policy.allocation.candidacy import Candidacy, Taken, Undo
from casaba.policy.allocation.explanation import Trace
from casaba.policy.allocation.outcome import AllocationFailed
from casaba.policy.allocation.pools import Candidate, candidates
from casaba.policy.allocation.problem import RESULTS_PER_CLAIM_LIMIT, Problem
from casaba.policy.allocation.requests import ALL, EXACT_COUNT, RequestKey, Wanted, claim_name
from casaba.wire.kubernetes import ResourceClaim


class _Outcome(Enum):
    FOUND = auto()
    IMPOSSIBLE = auto()
    TOO_MANY = auto()
    """No way through here stays within the limit of results; other devices would not help."""


_Step = Generator["_Step", _Outcome, _Outcome]
"""A part of the search, which yields the part that must be done next and gets its outcome."""


class Search:
    """One search; afterwards `taken` and `chosen` hold the solution, `trace` the obstacles."""

    def __init__(self, problem: Problem) -> None:
        self.chosen: dict[tuple[int, int], Wanted] = {}
        """Which alternative was taken, by claim and request."""
        self.trace = Trace()
        self._problem = problem
        self._steps_left = problem.step_limit
        self._candidacy = Candidacy(problem, self.trace)
        self._all: dict[RequestKey, tuple[Candidate, ...]] = {}
        """The devices of requests for all of them."""
        self._candidates = tuple(c for pool in problem.pools for c in candidates(pool))

    @property
    def taken(self) -> list[list[Taken]]:
        """The devices, by claim."""
        return self._candidacy.taken

    def run(self) -> bool:
        """Whether there is a solution; raises AllocationFailed as the scheduler's allocator."""
        for index, claim in enumerate(self._problem.claims):
            self._check_size(index, claim)
            self._candidacy.add_constraints(claim)
        return _driven(self._claim(0)) is _Outcome.FOUND

    def _check_size(self, index: int, claim: ResourceClaim) -> None:
        """The least number of devices that the claim needs must fit into its status."""
        least = 0
        for alternatives in self._problem.requests[index]:
            # Not lazily: each of them may be wrong.
            least += min([self._devices_needed(wanted) for wanted in alternatives])
        if least > RESULTS_PER_CLAIM_LIMIT:
            raise AllocationFailed(
                f"claim {claim_name(claim)}: number of requested devices {least} "
                f"exceeds the claim limit of {RESULTS_PER_CLAIM_LIMIT}"
            )

    def _devices_needed(self, wanted: Wanted) -> int:
        self._problem.selectors.class_of(wanted)
        if wanted.amounts and not self._problem.behaviour.consumable_capacity:
            raise AllocationFailed(
                f"{self._problem.named(wanted)}: has capacity requests, "
                "but the DRAConsumableCapacity feature is disabled"
            )
        if wanted.mode == ALL:
            self._all[wanted.key] = tuple(self._everything(wanted))
            return len(self._all[wanted.key])
        if wanted.mode == EXACT_COUNT:
            return wanted.count
        named = self._problem.named(wanted)
        raise AllocationFailed(f"{named}: unsupported count mode {wanted.mode}")

    def _everything(self, wanted: Wanted) -> Sequence[Candidate]:
        found = []
        for pool in self._problem.pools:
            if pool.incomplete or pool.problem:
                state = "being updated" if pool.incomplete else "invalid"
                raise AllocationFailed(
                    f"{self._problem.named(wanted)}: asks for all devices, "
                    f"but resource pool {pool} is currently {state}"
                )
            found += [c for c in candidates(pool) if self._candidacy.is_suitable(wanted, c)]
        return found

    def _claim(self, index: int) -> _Step:
        if index == len(self._problem.claims):
            return _Outcome.FOUND
        outcome = yield self._request(index, 0)
        # Other devices for an earlier claim may still make place for a smaller alternative.
        return _Outcome.IMPOSSIBLE if outcome is _Outcome.TOO_MANY else outcome

    def _request(self, claim: int, index: int) -> _Step:
        if index == len(self._problem.requests[claim]):
            return (yield self._claim(claim + 1))
        outcomes = set()
        for wanted in self._problem.requests[claim][index]:
            outcome = yield self._devices(wanted, 0, 0)
            if outcome is _Outcome.FOUND:
                self.chosen[claim, index] = wanted
                return outcome
            outcomes.add(outcome)
        return _Outcome.TOO_MANY if outcomes == {_Outcome.TOO_MANY} else _Outcome.IMPOSSIBLE

    def _devices(self, wanted: Wanted, number: int, start: int) -> _Step:
        """Device `number` of a request and all that comes after it, from candidate `start` on."""
        everything = self._all.get(wanted.key)
        count = wanted.count if everything is None else len(everything)
        self.trace.reached(wanted, number, count)
        if everything == ():
            return _Outcome.IMPOSSIBLE
        if number >= count:
            return (yield self._request(wanted.claim, wanted.key[1] + 1))
        if len(self.taken[wanted.claim]) + count - number > RESULTS_PER_CLAIM_LIMIT:
            self.trace.too_many(wanted, RESULTS_PER_CLAIM_LIMIT)
            return _Outcome.TOO_MANY
        if everything is None:
            return (yield self._one_of_several(wanted, number, start))
        return (yield self._one_of_all(wanted, everything, number))

    def _one_of_all(self, wanted: Wanted, everything: tuple[Candidate, ...], number: int) -> _Step:
        """All must be taken, so there is no second candidate."""
        self._count_step()
        give_back = self._candidacy.take(wanted, everything[number], must=True)
        if give_back is None:
            return _Outcome.IMPOSSIBLE
        outcome = yield self._devices(wanted, number + 1, 0)
        if outcome is not _Outcome.FOUND:
            give_back()
        return outcome

    def _one_of_several(self, wanted: Wanted, number: int, start: int) -> _Step:
        repeats = self._problem.behaviour.repeats_shared_device
        for index in range(start, len(self._candidates)):
            give_back = self._taken(wanted, self._candidates[index])
            if give_back is None:
                continue
            outcome = yield self._devices(wanted, number + 1, 0 if repeats else index + 1)
            if outcome is _Outcome.FOUND:
                return outcome
            give_back()
            if outcome is _Outcome.TOO_MANY:
                return outcome
        return _Outcome.IMPOSSIBLE

    def _taken(self, wanted: Wanted, candidate: Candidate) -> Undo | None:
        self._count_step()
        if not self._candidacy.is_free(wanted, candidate):
            return None
        if not self._candidacy.is_suitable(wanted, candidate):
            return None
        return self._candidacy.take(wanted, candidate, must=False)

    def _count_step(self) -> None:
        if self._steps_left == 0:
            raise AllocationFailed(
                f"node {self._problem.node.name}: gave up after looking at devices "
                f"{self._problem.step_limit} times: ask for fewer devices at once, or select "
                "them more narrowly"
            )
        self._steps_left -= 1


def _driven(first: _Step) -> _Outcome:
    """Runs the parts of a search one by one, so that its depth needs no deep call stack."""
    stack = [first]
    outcome: _Outcome | None = None
    while stack:
        try:
            part = next(stack[-1]) if outcome is None else stack[-1].send(outcome)
        except StopIteration as done:
            stack.pop()
            outcome = done.value
        else:
            stack.append(part)
            outcome = None
    assert outcome is not None
    return outcome
