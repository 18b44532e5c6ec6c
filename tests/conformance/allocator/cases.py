"""All written cases."""

from tests.conformance.allocator import (
    cases_capacity,
    cases_nodes,
    cases_order,
    cases_relations,
    cases_requests,
    cases_selectors,
    cases_shares,
)

CASES = (
    *cases_capacity.CASES,
    *cases_shares.CASES,
    *cases_order.CASES,
    *cases_nodes.CASES,
    *cases_selectors.CASES,
    *cases_requests.CASES,
    *cases_relations.CASES,
)
