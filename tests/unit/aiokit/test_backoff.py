"""Delays grow to a limit, stay within their jitter, and start over after a success."""

from casaba.aiokit import Backoff


def test_delays_double_up_to_the_limit() -> None:
    backoff = Backoff(first_s=1, limit_s=5, jitter=lambda: 1.0)
    assert [backoff.next_delay_s() for _ in range(5)] == [1, 2, 4, 5, 5]


def test_jitter_takes_away_at_most_half() -> None:
    backoff = Backoff(first_s=1, limit_s=5, jitter=lambda: 0.0)
    assert [backoff.next_delay_s() for _ in range(4)] == [0.5, 1, 2, 2.5]


def test_reset_starts_over() -> None:
    backoff = Backoff(first_s=1, limit_s=5, jitter=lambda: 1.0)
    backoff.next_delay_s()
    backoff.reset()
    assert backoff.next_delay_s() == 1
