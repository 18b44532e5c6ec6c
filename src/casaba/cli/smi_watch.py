"""The same shown again and again; an agent that is started anew is waited for."""

import math
import sys
import time
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape

from casaba.errors import HostError, InvalidInput

_SHORTEST_S = 0.1
_LONGEST_S = 86400.0


def checked_pause(watch: float) -> float:
    """The pause between two showings, in seconds; raises InvalidInput for one that is none."""
    if not (math.isfinite(watch) and _SHORTEST_S <= watch <= _LONGEST_S):
        longest = f"{_LONGEST_S:.0f}"
        raise InvalidInput(f"--watch {watch}: give {_SHORTEST_S} to {longest} seconds")
    return watch


def repeat(show: Callable[[], None], pause_s: float | None) -> None:
    """Show once, and then until Ctrl-C; without a pause only once.

    Nobody who answers at first is an error, later somebody to wait for: it is said on stderr once.
    """
    show()
    if pause_s is not None:
        _go_on(show, pause_s, lambda why: print(f"casaba smi: {why}", file=sys.stderr, flush=True))


def show_live(console: Console, view: Callable[[], RenderableType], pause_s: float) -> None:
    """The same on a screen of its own."""
    with Live(view(), console=console, screen=True, auto_refresh=False) as live:
        _go_on(
            lambda: live.update(view(), refresh=True),
            pause_s,
            lambda why: live.update(f"[yellow]{escape(why)}[/yellow]", refresh=True),
        )


def _go_on(show: Callable[[], None], pause_s: float, say: Callable[[str], None]) -> None:
    waits = False
    while True:
        time.sleep(pause_s)
        try:
            show()
            waits = False
        except HostError as error:
            if not waits:
                say(f"waiting: {error}")
            waits = True
