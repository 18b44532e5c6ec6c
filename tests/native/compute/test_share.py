"""`cores` is a share of the card's time, whatever is launched and however."""

import time
from pathlib import Path

import pytest

from tests.native.compute.shared_card import NS_PER_S, SharedCard

HALF, QUARTER = (40, 60), (15, 35)
SETTLE_S = 0.5
MIXED = "200us,1ms,10ms"


def within(share: float, bounds: tuple[float, float]) -> bool:
    low, high = bounds
    return low <= share <= high


@pytest.mark.parametrize(
    ("mode", "kernels"), [("async", "50us"), ("async", "10ms"), ("graph", "50us"), ("graph", "1ms")]
)
def test_a_lone_tenant_gets_its_cap(card: SharedCard, mode: str, kernels: str) -> None:
    with card.busy(card.claim("a", 50), kernels, mode) as program:
        (share,) = card.shares(program, over_s=1.0)
    assert within(share, HALF)


@pytest.mark.parametrize("kernels", ["50us", "1ms"])
def test_who_waits_for_each_launch_is_charged_no_more(card: SharedCard, kernels: str) -> None:
    """Where the machine is too slow for the program to reach its cap, it is not held back."""
    claim = card.claim("a", 50)
    with card.busy(claim, kernels, "sync") as program:
        held_ns = claim.told("wait_ns")
        (share,) = card.shares(program, over_s=1.0)
        held_ns = claim.told("wait_ns") - held_ns
    assert share < 60
    assert share > 40 or held_ns < 0.1 * NS_PER_S


@pytest.mark.parametrize("kernels", ["5us", "1ms"])
def test_the_cap_holds_where_there_are_more_cards(
    tmp_path: Path, built: None, kernels: str
) -> None:
    """There each launch asks on which card it is."""
    card = SharedCard(tmp_path, more_cards=1)
    with card.busy(card.claim("a", 50), kernels) as program:
        (share,) = card.shares(program, over_s=1.0)
    assert within(share, HALF)


@pytest.mark.parametrize("cores", [0, 100])
def test_without_a_cap_a_lone_tenant_has_the_card(card: SharedCard, cores: int) -> None:
    with card.busy(card.claim("a", cores), "200us") as program:
        (share,) = card.shares(program, over_s=0.5)
    assert share > 95


def test_two_tenants_get_their_caps_side_by_side(card: SharedCard) -> None:
    half, quarter = card.claim("a", 50), card.claim("b", 25)
    with card.busy(half, MIXED) as first, card.busy(quarter, MIXED) as second:
        time.sleep(SETTLE_S)
        shares = card.shares(first, second, over_s=1.5)
    assert within(shares[0], HALF)
    assert within(shares[1], QUARTER)


def test_contended_time_goes_by_weight(card: SharedCard) -> None:
    heavy, light = card.claim("a", 0, weight=3), card.claim("b", 0, weight=1)
    with card.busy(heavy, "200us") as first, card.busy(light, "5ms") as second:
        time.sleep(SETTLE_S)
        shares = card.shares(first, second, over_s=1.5)
    assert within(shares[0], (65, 85))
    assert within(shares[1], QUARTER)


def test_all_processes_of_a_claim_share_its_cap(card: SharedCard) -> None:
    claim = card.claim("a", 50)
    with card.busy(claim, "200us") as first, card.busy(claim, "1ms", "sync") as second:
        time.sleep(SETTLE_S)
        shares = card.shares(first, second, over_s=1.5)
    assert within(sum(shares), HALF)
    assert min(shares) > 10


def test_a_change_holds_while_the_program_runs(card: SharedCard) -> None:
    claim = card.claim("a", 75)
    with card.busy(claim, "1ms") as program:
        claim.change(cores=25)
        time.sleep(SETTLE_S)
        assert within(card.shares(program, over_s=0.8)[0], QUARTER)
        claim.change(cores=0)
        time.sleep(SETTLE_S)
        assert card.shares(program, over_s=0.5)[0] > 95
        claim.change(cores=50)
        time.sleep(SETTLE_S)
        assert within(card.shares(program, over_s=0.8)[0], HALF)


def test_the_region_tells_what_was_granted(card: SharedCard) -> None:
    claim = card.claim("a", 50)
    with card.busy(claim, "200us") as program:
        before, told_ns = card.account(), claim.told("gpu_time_ns")
        time.sleep(1)
        after, told_later_ns = card.account(), claim.told("gpu_time_ns")
    served_ns = after.busy_ns[program.pid] - before.busy_ns[program.pid]
    assert abs(told_later_ns - told_ns - served_ns) < 0.05 * served_ns
    assert claim.told("launches") > 2000
    assert claim.told("wait_ns") > 0.2 * NS_PER_S
    assert claim.told("last_launch_ns") > 0
