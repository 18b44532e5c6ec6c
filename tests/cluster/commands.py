"""Short-lived programs that the bed calls and that must succeed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tests.cluster.errors import BedError

_TIMEOUT_S = 120.0


def run(argv: Sequence[str], stdin: str = "") -> str:
    """Run a program to its end; its standard output comes back.

    Raises:
        BedError: it failed or took too long; the message carries what it said.
    """
    try:
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise BedError(f"`{' '.join(argv)}` took more than {_TIMEOUT_S:.0f} s") from None
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip()
        raise BedError(f"`{' '.join(argv)}` failed (exit {done.returncode}): {said}\n{stdin}")
    return done.stdout
