"""Whether one device can serve one request, and what changes when it does.

Holds the solution that is being built. Checks are made in the scheduler's order: in use, class,
request, node, capacity, counters, taints, constraints.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from casaba.policy.allocation.capacity import Amounts, Shortage, consumption, shortage
from casaba.policy.allocation.constraints import Constraint, constraints_of
from casaba.policy.allocation.counters import CounterAccount
from casaba.policy.allocation.explanation import Trace
from casaba.policy.allocation.ledger import Tentative
from casaba.policy.allocation.outcome import AllocationFailed, DeviceId
from casaba.policy.allocation.pools import Candidate, device_reaches
from casaba.policy.allocation.problem import Problem
from casaba.policy.allocation.requests import RequestKey, Wanted
from casaba.policy.allocation.taints import untolerated
from casaba.wire.kubernetes import ResourceClaim

_PairKey = tuple[RequestKey, DeviceId]
Undo = Callable[[], object]


@dataclass(frozen=True, kw_only=True, eq=False)
class Taken:
    """A device in a solution."""

    wanted: Wanted
    candidate: Candidate
    amounts: Amounts | None
    """What a share takes; None for a device that is taken whole."""


class Candidacy:
    """Judges devices beside those that the solution has already."""

    def __init__(self, problem: Problem, trace: Trace) -> None:
        self.taken: list[list[Taken]] = [[] for _ in problem.claims]
        """The solution, by claim."""
        self._problem = problem
        self._trace = trace
        self._tentative = Tentative()
        self._counters = CounterAccount(problem.committed)
        self._constraints: list[tuple[Constraint, ...]] = []
        self._objections: dict[_PairKey, str] = {}
        self._consumption: dict[_PairKey, Amounts | str] = {}

    def add_constraints(self, claim: ResourceClaim) -> None:
        """Of the next claim; raises AllocationFailed for one of an unknown kind."""
        ignored = self._problem.behaviour.distinct_is_ignored
        self._constraints.append(constraints_of(claim, distinct_is_ignored=ignored))

    def is_suitable(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether the device meets what the request asks for and has room for it.

        Raises AllocationFailed when an expression fails.
        """
        objection = self._objection(wanted, candidate) or self._shortage(wanted, candidate)
        return self._note(wanted, candidate, objection)

    def is_free(self, wanted: Wanted, candidate: Candidate) -> bool:
        """Whether nobody has the whole device; adminAccess may share with others' claims."""
        identity, objection = candidate.id, ""
        if wanted.admin:
            if self._tentative.is_taken_by(identity, wanted.claim):
                objection = "taken for another request of this claim"
        elif identity in self._problem.committed.whole:
            objection = "in use by another claim"
        elif self._tentative.is_taken(identity):
            objection = "taken for another request of the same pod"
        return self._note(wanted, candidate, objection)

    def take(self, wanted: Wanted, candidate: Candidate, *, must: bool) -> Undo | None:
        """Takes the device into the solution; the answer gives it back, None if it can't be had.

        With `must`, a constraint that forbids the device is an error of the claim.
        """
        undo: list[Undo] = []
        if not self.is_free(wanted, candidate) or not self._takes_all_parts(
            wanted, candidate, undo, must
        ):
            _run_backwards(undo)
            return None
        return lambda: _run_backwards(undo)

    def _takes_all_parts(
        self, wanted: Wanted, candidate: Candidate, undo: list[Undo], must: bool
    ) -> bool:
        return (
            self._takes_counters(wanted, candidate, undo)
            and self._tolerates(wanted, candidate)
            and self._satisfies_constraints(wanted, candidate, undo, must)
            and self._takes_device(wanted, candidate, undo)
        )

    def _takes_counters(self, wanted: Wanted, candidate: Candidate, undo: list[Undo]) -> bool:
        """Only the first share of a device takes its counters."""
        if not candidate.device.consumes_counters or self._has_shares(candidate):
            return True
        if self._note(wanted, candidate, self._counters.take(candidate)):
            undo.append(lambda: self._counters.give_back(candidate))
            return True
        return False

    def _has_shares(self, candidate: Candidate) -> bool:
        """Of its capacity: shares of a device without any are not seen by the scheduler."""
        return self._is_shared(candidate) and (
            bool(self._problem.committed.shares(candidate.id))
            or self._tentative.is_shared(candidate.id)
        )

    def _is_shared(self, candidate: Candidate) -> bool:
        shares = self._problem.behaviour.consumable_capacity
        return shares and candidate.device.allow_multiple_allocations

    def _tolerates(self, wanted: Wanted, candidate: Candidate) -> bool:
        taint = untolerated(candidate.device, wanted.tolerations)
        if taint is None:
            return True
        text = f"{taint.key}={taint.value}" if taint.value else taint.key
        return self._note(wanted, candidate, f"taint {text}:{taint.effect} is not tolerated")

    def _satisfies_constraints(
        self, wanted: Wanted, candidate: Candidate, undo: list[Undo], must: bool
    ) -> bool:
        for constraint in self._constraints[wanted.claim]:
            if not constraint.add(wanted, candidate):
                if must:
                    raise AllocationFailed(
                        f"{self._problem.named(wanted)}: cannot add device {candidate.id} "
                        "because a claim constraint would not be satisfied"
                    )
                return self._note(wanted, candidate, f"{constraint} would not hold")
            undo.append(partial(constraint.remove, wanted))
        return True

    def _takes_device(self, wanted: Wanted, candidate: Candidate, undo: list[Undo]) -> bool:
        """Room is looked for again, since `all` devices are not tried one by one."""
        identity = candidate.id
        if not self._note(wanted, candidate, self._shortage(wanted, candidate)):
            return False
        amounts: Amounts | None = None
        if self._is_shared(candidate):
            amounts = self._amounts_of_share(wanted, candidate)
            self._tentative.take_share(identity, amounts)
            undo.append(lambda: self._tentative.give_back_share(identity))
        else:
            self._tentative.take(identity, wanted.claim)
            undo.append(lambda: self._tentative.give_back(identity, wanted.claim))
        self.taken[wanted.claim].append(Taken(wanted=wanted, candidate=candidate, amounts=amounts))
        undo.append(self.taken[wanted.claim].pop)
        return True

    def _objection(self, wanted: Wanted, candidate: Candidate) -> str:
        """What of the request the device does not meet; does not change during a search."""
        key = (wanted.key, candidate.id)
        if key not in self._objections:
            claim = self._problem.claims[wanted.claim]
            objection = self._problem.selectors.objection(wanted, claim, candidate)
            self._objections[key] = objection or self._out_of_reach(candidate)
        return self._objections[key]

    def _out_of_reach(self, candidate: Candidate) -> str:
        by_device = candidate.slice.spec.per_device_node_selection
        if not by_device or device_reaches(candidate.device, self._problem.node):
            return ""
        return f"it can't be used on node {self._problem.node.name}"

    def _shortage(self, wanted: Wanted, candidate: Candidate) -> str | Shortage | None:
        if not self._problem.behaviour.consumable_capacity:
            return None
        amounts = self._amounts(wanted, candidate)
        if isinstance(amounts, str):
            return amounts
        committed = self._problem.committed.shares(candidate.id)
        tentative = self._tentative.shares(candidate.id)
        return shortage(amounts, candidate.device, (*committed, *tentative))

    def _amounts_of_share(self, wanted: Wanted, candidate: Candidate) -> Amounts:
        amounts = self._amounts(wanted, candidate)
        assert not isinstance(amounts, str)
        return amounts

    def _amounts(self, wanted: Wanted, candidate: Candidate) -> Amounts | str:
        key = (wanted.key, candidate.id)
        if key not in self._consumption:
            self._consumption[key] = consumption(wanted.amounts, candidate.device)
        return self._consumption[key]

    def _note(self, wanted: Wanted, candidate: Candidate, objection: str | Shortage | None) -> bool:
        """True if there is no objection."""
        if not objection:
            return True
        self._trace.obstacle(wanted, candidate.id, objection)
        return False


def _run_backwards(undo: list[Undo]) -> None:
    while undo:
        undo.pop()()
