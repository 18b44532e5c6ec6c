"""The terminal of a command: rich's, which leaves a closed pipe to the entry point."""

from rich.console import Console


class CommandConsole(Console):
    """Prints on the standard output; raises BrokenPipeError when nobody reads any more."""

    def on_broken_pipe(self) -> None:
        """Instead of rich's own exit."""
        raise BrokenPipeError
