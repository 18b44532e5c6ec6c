"""The shell's side: parse, call a service, print, exit code. The only reader of the environment.

Each command is a module of its own that is imported when it is called, so that a daemon does not
carry the libraries of the interactive commands.
"""

import importlib
import sys

COMMANDS = {
    "run": "give a command a slice of a card, here and now",
    "smi": "see what slices hold and use",
    "demo": "see a slice hold, on a virtual card",
    "node-agent": "serve this node's cards to Kubernetes",
}


def main() -> None:
    """The entry point `casaba`."""
    arguments = sys.argv[1:]
    command = arguments[0] if arguments else "--help"
    if command == "--version":
        from casaba import __version__

        print(__version__)
    elif command in COMMANDS:
        module = importlib.import_module(f"casaba.cli.{command.replace('-', '_')}")
        sys.exit(module.main(arguments[1:]))
    elif command in ("--help", "-h", "help"):
        print(_overview())
    else:
        print(f"casaba: no command {command!r}\n\n{_overview()}", file=sys.stderr)
        sys.exit(2)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(["usage: casaba COMMAND …  (COMMAND --help tells more)", "", *lines])
