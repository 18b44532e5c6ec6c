"""Policy and region of a budget."""

import os
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casaba.model.limits import Policy
from casaba.node.budgets import ensure_budget
from casaba.wire.policy_file import parse_policy
from casaba.wire.region_file import REGION_BYTES
from tests.unit.values import policies


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=30,
)
@given(st.lists(policies(), min_size=1, max_size=5))
def test_limits_change_in_the_file_that_containers_have_mounted(
    tmp_path: Path, changes: list[Policy]
) -> None:
    folder = tmp_path / "budget"
    ensure_budget(folder, changes[0])
    mounted = os.open(folder / "policy", os.O_RDONLY)
    try:
        for policy in changes:
            ensure_budget(folder, policy)
            seen = parse_policy(os.pread(mounted, 5000, 0))
            assert (seen.cards, seen.announce) == (policy.cards, policy.announce)
    finally:
        os.close(mounted)


def test_a_region_of_another_size_is_replaced(tmp_path: Path) -> None:
    ensure_budget(tmp_path, Policy(cards=(), announce=False))
    os.truncate(tmp_path / "region", 10)
    ensure_budget(tmp_path, Policy(cards=(), announce=False))
    assert (tmp_path / "region").stat().st_size == REGION_BYTES
