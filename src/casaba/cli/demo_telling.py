"""How the demo speaks: a story at a person's pace, or a JSON object per step."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding

from casaba.cli.console import CommandConsole
from casaba.errors import HostError

PAUSE_S = 1.2
"""After each step of a story, so that a person can read along."""

_STDOUT = 1


class Teller:
    """Tells each step as a story for a person, or as JSON lines for a machine.

    All of it raises BrokenPipeError when nobody reads any more, HostError when it can't write.
    """

    def __init__(self, *, as_json: bool, fast: bool) -> None:
        self._as_json = as_json
        self.fast = fast
        self._pause_s = 0.0 if fast or as_json else PAUSE_S
        self._console = CommandConsole(highlight=False, emoji=False)
        self._steps = 0

    @property
    def live_console(self) -> Console | None:
        """Where moving bars may be drawn; None where nobody would see them move."""
        return self._console if self._console.is_terminal and not self._as_json else None

    def title(self, text: str) -> None:
        """What comes next."""
        self._steps += 1
        self.show(f"\n[bold]{self._steps}. {escape(text)}[/bold]")

    def command(self, words: str) -> None:
        """What a person would have typed for it; in one line, so that it can be copied."""
        self._print(f"[dim]$ {escape(words)}[/dim]", soft_wrap=True)

    def show(self, what: RenderableType) -> None:
        """Lines or a table of the story; long lines are broken on a terminal only."""
        self._print(what, soft_wrap=not self._console.is_terminal)

    def changed(self, object_: str, state: str) -> None:
        """An object of the API server, and what became of it; beside it, or below if long."""
        named, told = f"  [cyan]{escape(object_)}[/cyan]", escape(state)
        fits = len(object_) + len(state) + 4 <= self._console.width
        if fits or not self._console.is_terminal:
            self.show(f"{named}  {told}")
        else:
            self.show(named)
            self.show(Padding(told, (0, 0, 0, 6)))

    def output(self, text: str) -> None:
        """What a tenant's program printed, as it is."""
        if not self._as_json:
            with _reaching_a_reader():
                print(text, end="", flush=True)

    async def step(self, name: str, /, **facts: object) -> None:
        """A step is over: its facts for a machine, a pause for a person."""
        if self._as_json:
            with _reaching_a_reader():
                print(json.dumps({"step": name, **facts}), flush=True)
        await asyncio.sleep(self._pause_s)

    def _print(self, what: RenderableType, *, soft_wrap: bool) -> None:
        if not self._as_json:
            with _reaching_a_reader():
                self._console.print(what, soft_wrap=soft_wrap)


@contextmanager
def _reaching_a_reader() -> Iterator[None]:
    """Translates the failure to write; what is left in buffers then goes nowhere."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
        raise HostError(f"can't write to the standard output: {error.strerror}") from error
