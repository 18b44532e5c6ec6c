"""Restart decisions."""

import pytest

from casaba.simulation.kubelet.restarts import (
    After,
    CrashBackOff,
    after_end,
    after_init_end,
    final_phase,
)


@pytest.mark.parametrize(
    ("policy", "code", "follows"),
    [
        ("Always", 0, After.RESTART),
        ("Always", 1, After.RESTART),
        ("OnFailure", 0, After.DONE),
        ("OnFailure", 137, After.RESTART),
        ("Never", 0, After.DONE),
        ("Never", 1, After.DONE),
    ],
)
def test_the_policy_decides_what_follows(policy: str, code: int, follows: After) -> None:
    assert after_end(policy, code) is follows


@pytest.mark.parametrize(
    ("policy", "code", "follows"),
    [
        ("Always", 0, After.DONE),
        ("Always", 1, After.RESTART),
        ("OnFailure", 1, After.RESTART),
        ("Never", 1, After.DONE),
    ],
)
def test_an_init_container_succeeds_once(policy: str, code: int, follows: After) -> None:
    assert after_init_end(policy, code) is follows


def test_the_first_restart_is_at_once_and_later_ones_wait_longer() -> None:
    backoff = CrashBackOff(first_s=10, limit_s=300)
    delays = [backoff.delay_s(restarts) for restarts in range(8)]
    assert delays == [0, 10, 20, 40, 80, 160, 300, 300]
    assert backoff.delay_s(10_000) == 300


def test_a_long_run_is_a_recovery() -> None:
    backoff = CrashBackOff(first_s=10, limit_s=300)
    assert not backoff.has_recovered(599)
    assert backoff.has_recovered(600)


def test_one_failure_fails_the_pod() -> None:
    assert final_phase([0, 0]) == "Succeeded"
    assert final_phase([0, 143]) == "Failed"
