"""What ends or lies costs at most a turn: neighbours go on, and nobody passes its cap."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.native.compute.shared_card import Claim, SharedCard
from tests.native.guard.tenant import SUCCESS, Tenant

SETTLE_S = 0.5
ROUNDS = 4
STALL_S = 0.02


def test_a_killed_holder_is_replaced(card: SharedCard) -> None:
    """In a window behind each kill the survivor lacks no more than a stall and the kernel of the
    killed process that is still on the card."""
    survivor, victim = card.claim("a", 0), card.claim("b", 0, weight=10_000)
    window_s, kernel_s = 0.4, 0.01
    with card.busy(survivor, "1ms") as program:
        for _ in range(ROUNDS):
            with card.busy(victim, "10ms"):
                time.sleep(SETTLE_S)
            (share,) = card.shares(program, over_s=window_s)
            assert share > (1 - (STALL_S + kernel_s) / window_s) * 100 - 5


def test_a_stopped_holder_does_not_stop_the_others(card: SharedCard) -> None:
    with card.busy(card.claim("a", 0), "1ms") as program, card.busy(card.claim("b", 0), "1ms") as b:
        time.sleep(SETTLE_S)
        os.kill(b.pid, signal.SIGSTOP)
        time.sleep(SETTLE_S)
        (share,) = card.shares(program, over_s=1.0)
    assert share > 80


def truncate(card: SharedCard) -> None:
    os.truncate(card.schedule, 0)


def scribble(card: SharedCard) -> None:
    with card.schedule.open("r+b") as file:
        file.write(os.urandom(8192))


def scribble_records(card: SharedCard) -> None:
    """Behind a header that is still good."""
    with card.schedule.open("r+b") as file:
        file.seek(64)
        file.write(os.urandom(8192 - 64))


@pytest.mark.parametrize("damage", [truncate, scribble, scribble_records])
def test_a_damaged_schedule_ends_nobody(
    card: SharedCard, damage: Callable[[SharedCard], None]
) -> None:
    half, quarter = card.claim("a", 50), card.claim("b", 25)
    with card.busy(half, "1ms") as first, card.busy(quarter, "1ms") as second:
        time.sleep(SETTLE_S)
        damage(card)
        time.sleep(SETTLE_S)
        shares = card.shares(first, second, over_s=1.0)
        assert 20 < shares[0] < 60
        assert 8 < shares[1] < 35
        card.rebuild_schedule()
        time.sleep(SETTLE_S)
        shares = card.shares(first, second, over_s=1.0)
        assert 40 < shares[0] < 60
        assert 15 < shares[1] < 35


def test_without_a_schedule_the_cap_holds(card: SharedCard) -> None:
    claim = card.claim("a", 50)
    card.schedule.unlink()
    with card.busy(claim, "1ms") as program:
        assert 40 < card.shares(program, over_s=1.0)[0] < 60


def test_captures_are_left_alone(card: SharedCard) -> None:
    """A program that captures, launches and drops graphs all the time, held back: a capture that
    was disturbed would end it."""
    claim = card.claim("a", 50)
    with card.busy(claim, "50us,1ms", "capture") as program:
        (share,) = card.shares(program, over_s=1.5)
        assert program.process.poll() is None
    assert 40 < share < 60


@pytest.mark.parametrize("kernels", ["50us", "10ms"])
def test_a_capture_that_stays_open_is_no_way_around(card: SharedCard, kernels: str) -> None:
    with card.busy(card.claim("a", 50), kernels, "beside") as program:
        (share,) = card.shares(program, over_s=1.0)
    assert 40 < share < 60


def start(card: SharedCard, claim: Claim | None) -> tuple[Tenant, int]:
    """A process that launches when it is told to, and a kernel of 1 ms."""
    tenant = Tenant(card.environment(claim))
    tenant.start()
    module = tenant.call("cuModuleLoadData", bytes(8), b"any\0").number()
    return tenant, tenant.call("cuModuleGetFunction", bytes(8), module, b"spin_1ms\0").number()


def launch(tenant: Tenant, function: int) -> int:
    grid = (1, 1, 1, 1, 1, 1, 0)
    return tenant.call("cuLaunchKernel", function, *grid, None, None, None).result


def test_a_fork_child_starts_anew(card: SharedCard) -> None:
    tenant, function = start(card, card.claim("a", 50))
    with tenant:
        assert launch(tenant, function) == SUCCESS
        assert tenant.fork()
        assert launch(tenant, function) != SUCCESS, "the driver is unusable behind fork"
        tenant.leave_child()
        assert [launch(tenant, function) for _ in range(30)] == [SUCCESS] * 30


def test_errors_of_the_driver_stay_as_they_are(card: SharedCard) -> None:
    held, plain = start(card, card.claim("a", 50)), start(card, None)
    no_blocks = (0, 1, 1, 1, 1, 1, 0, None, None, None)
    with held[0], plain[0]:
        results = [
            tenant.call("cuLaunchKernel", f, *no_blocks).result for tenant, f in (held, plain)
        ]
        assert results[0] == results[1] != SUCCESS
        assert launch(*held) == SUCCESS


def test_no_thread_before_a_launch(card: SharedCard) -> None:
    tenant, function = start(card, card.claim("a", 50))
    with tenant:
        tasks = Path(f"/proc/{tenant.process.pid}/task")
        before = len(list(tasks.iterdir()))
        assert launch(tenant, function) == SUCCESS
        assert len(list(tasks.iterdir())) == before + 1
