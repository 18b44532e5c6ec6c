"""The shell's side: parse, call a service, print, exit code. The only reader of the environment.

Each command is a module of its own that is imported when it is called, so that a daemon does not
carry the libraries of the interactive commands.
"""

import importlib
import os
import sys

INTERRUPTED = 130
"""Exit code after Ctrl-C, as of shells."""

READER_GONE = 141
"""Exit code when nobody reads any more, as of a program that SIGPIPE ends."""

_STDOUT = 1

COMMANDS = {
    "run": "give a command a slice of a card, here and now",
    "smi": "see what slices hold and use",
    "demo": "see a slice hold, on a virtual card",
    "doctor": "see what is wrong, and what to do",
    "node-agent": "serve this node's cards to Kubernetes",
    "webhook": "turn classic GPU pods into pods with claims",
    "uninstall": "take casaba away from a cluster, as the chart does",
    "node-clean": "take away what casaba left on a node",
    "controller": "collect, renew certificates, tell what is allocated",
}


def main() -> None:
    """The entry point `casaba`."""
    try:
        code = _run(sys.argv[1:])
        print(end="", flush=True)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
        code = READER_GONE
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    command = arguments[0] if arguments else "--help"
    if command == "--version":
        from casaba import __version__

        print(__version__)
    elif command in COMMANDS:
        module = importlib.import_module(f"casaba.cli.{command.replace('-', '_')}")
        return int(module.main(arguments[1:]))
    elif command in ("--help", "-h", "help"):
        print(_overview())
    else:
        print(f"casaba: no command {command!r}\n\n{_overview()}", file=sys.stderr)
        return 2
    return 0


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(["usage: casaba COMMAND …  (COMMAND --help tells more)", "", *lines])
