"""How the demo speaks: a story at a person's pace, or a JSON object per step."""

import asyncio
import json
import sys

from rich.console import Console, RenderableType

PAUSE_S = 1.2
"""After each step of a story, so that a person can read along."""


class Teller:
    """Tells each step as a story for a person, or as JSON lines for a machine."""

    def __init__(self, *, as_json: bool, fast: bool) -> None:
        self._as_json = as_json
        self.fast = fast
        self._pause_s = 0.0 if fast or as_json else PAUSE_S
        self._console = Console(highlight=False)
        self._steps = 0

    @property
    def live_console(self) -> Console | None:
        """Where moving bars may be drawn; None where nobody would see them move."""
        return self._console if self._console.is_terminal and not self._as_json else None

    def title(self, text: str) -> None:
        """What comes next."""
        self._steps += 1
        self.show(f"\n[bold]{self._steps}. {text}[/bold]")

    def command(self, words: str) -> None:
        """What a person would have typed for it."""
        self.show(f"[dim]$ {words}[/dim]")

    def show(self, what: RenderableType) -> None:
        """A line or a table of the story."""
        if not self._as_json:
            self._console.print(what, soft_wrap=True)

    def changed(self, object_: str, state: str) -> None:
        """An object of the API server, and what became of it."""
        self.show(f"  [cyan]{object_}[/cyan]  {state}")

    def output(self, text: str) -> None:
        """What a tenant's program printed, as it is."""
        if not self._as_json:
            sys.stdout.write(text)
            sys.stdout.flush()

    async def step(self, name: str, /, **facts: object) -> None:
        """A step is over: its facts for a machine, a pause for a person."""
        if self._as_json:
            print(json.dumps({"step": name, **facts}), flush=True)
        await asyncio.sleep(self._pause_s)
