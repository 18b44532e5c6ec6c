"""What a real guard leaves behind for the agent to know it by."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from casaba.node.schedules import read_tenants
from casaba.node.usage import read_budget
from casaba.policy.lone_use import LoneUse, lone_uses
from casaba.wire.schedule_file import tenant_id
from tests.native.compute.shared_card import CARD, Claim, SharedCard

TIMEOUT_S = 60.0


@pytest.fixture
def card(tmp_path: Path) -> SharedCard:
    return SharedCard(tmp_path)


def until(condition: Callable[[], bool]) -> None:
    """Wait for it; fails after a long time."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def use_of(card: SharedCard, claim: Claim) -> LoneUse | None:
    """What the agent makes of a claim on the card, which is half busy."""
    budget = read_budget(claim.run_folder / "claims", claim.name, "main")
    assert budget is not None
    tenants = {CARD: read_tenants(card.schedule, CARD)}
    (use,) = lone_uses(budget, tenants, {CARD: 50})
    return use


@pytest.mark.parametrize("cores", [0, 100])
def test_the_agent_knows_when_a_guard_measures_nothing(card: SharedCard, cores: int) -> None:
    one, other = card.claim("one", cores), card.claim("other", 30)
    assert use_of(card, one) == LoneUse(present=False, percent=50)
    with card.busy(one, "200us"):
        until(lambda: use_of(card, one) == LoneUse(present=True, percent=50))
        assert read_tenants(card.schedule, CARD) == {tenant_id("one", "main")}
        with card.busy(other, "200us"):
            until(lambda: use_of(card, one) is None)
            assert use_of(card, other) is None
        until(lambda: use_of(card, one) == LoneUse(present=True, percent=50))
    until(lambda: use_of(card, one) == LoneUse(present=False, percent=50))


def test_a_slot_tells_its_owners_namespace(card: SharedCard) -> None:
    claim = card.claim("one", 0)
    with card.busy(claim, "200us") as program:
        budget = read_budget(claim.run_folder / "claims", "one", "main")
    assert budget is not None
    (process,) = budget.processes
    assert (process.slot, process.pid) == (0, program.pid)
    assert process.pid_namespace == Path("/proc/self/ns/pid").stat().st_ino
    assert process.started_ns > 0
