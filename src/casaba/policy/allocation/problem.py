"""What a search is given."""

from collections.abc import Sequence
from dataclasses import dataclass

from casaba.policy.allocation.behaviour import Behaviour
from casaba.policy.allocation.ledger import Committed
from casaba.policy.allocation.nodes import CandidateNode
from casaba.policy.allocation.pools import Pool
from casaba.policy.allocation.requests import Wanted, claim_name
from casaba.policy.allocation.selectors import Selectors
from casaba.wire.kubernetes import ResourceClaim

RESULTS_PER_CLAIM_LIMIT = 32
"""More devices than this can't be written into a claim's status."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Claims to be solved together on one node."""

    node: CandidateNode
    claims: Sequence[ResourceClaim]
    requests: tuple[tuple[tuple[Wanted, ...], ...], ...]
    """For each claim, for each request, its alternatives."""
    pools: tuple[Pool, ...]
    committed: Committed
    selectors: Selectors
    behaviour: Behaviour
    step_limit: int
    """Devices looked at, before the search is given up."""

    def named(self, wanted: Wanted) -> str:
        """Claim and request, as errors of the scheduler have them."""
        return f"claim {claim_name(self.claims[wanted.claim])}, request {wanted.own_name}"
