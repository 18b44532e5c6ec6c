"""Errors on their way to the shell: one message, one exit code."""

import sys
from collections.abc import Callable

from casaba.errors import CasabaError


def exit_code_of(command: str, action: Callable[[], None]) -> int:
    """Run an action; a CasabaError becomes a line on stderr and its exit code."""
    try:
        action()
    except CasabaError as error:
        print(f"casaba {command}: {error}", file=sys.stderr)
        return error.exit_code
    return 0
