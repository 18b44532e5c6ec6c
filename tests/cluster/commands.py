"""Short-lived programs that the bed calls and that must succeed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from tests.cluster.errors import BedError

_TIMEOUT_S = 120.0


def run(
    argv: Sequence[str],
    stdin: str = "",
    *,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> str:
    """Run a program to its end; its standard output comes back.

    Args:
        environment: all of it; None: ours.

    Raises:
        BedError: it failed or took too long; the message carries what it said.
    """
    try:
        done = subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise BedError(f"`{' '.join(argv)}` took more than {timeout_s:.0f} s") from None
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip()
        raise BedError(f"`{' '.join(argv)}` failed (exit {done.returncode}): {said}\n{stdin}")
    return done.stdout
