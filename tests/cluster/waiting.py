"""Waiting for a condition with a deadline, never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.cluster.errors import BedError

_POLL_S = 0.05


def wait_until(
    what: str,
    condition: Callable[[], bool],
    timeout_s: float,
    still_worth_it: Callable[[], None] = lambda: None,
    explain: Callable[[], str] = lambda: "",
) -> None:
    """Poll `condition` until it holds.

    Args:
        what: what is waited for, as the error names it.
        still_worth_it: raises when the condition can no longer become true.
        explain: called for the error's message when time is up.

    Raises:
        BedError: it did not hold within `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        still_worth_it()
        if time.monotonic() > deadline:
            raise BedError(f"{what}: not within {timeout_s:.0f} s. {explain()}".rstrip())
        time.sleep(_POLL_S)
