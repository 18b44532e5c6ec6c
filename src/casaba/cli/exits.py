"""Errors on their way to the shell: one message, one exit code."""

import sys
from collections.abc import Callable

from casaba.errors import CasabaError


def exit_code_of(command: str, action: Callable[[], None]) -> int:
    """Run an action; a CasabaError becomes a line on stderr, with its notes, and its exit code."""
    try:
        action()
    except CasabaError as error:
        return _told(command, error)
    except BaseExceptionGroup as group:
        ours, others = group.split(CasabaError)
        if ours is None or others is not None:
            raise
        return _told(command, _first_leaf(ours))
    return 0


def _told(command: str, error: CasabaError) -> int:
    message = "; ".join([str(error), *getattr(error, "__notes__", ())])
    print(f"casaba {command}: {message}", file=sys.stderr)
    return error.exit_code


def _first_leaf(group: BaseExceptionGroup[CasabaError]) -> CasabaError:
    first = group.exceptions[0]
    return _first_leaf(first) if isinstance(first, BaseExceptionGroup) else first
