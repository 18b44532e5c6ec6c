"""The real node agent in a process that kills itself at a moment which a test names.

As a program, `doomed_agent.py FLAGS` is `casaba node-agent FLAGS`, and DIE_AT in its environment is
`EVENT TIMES REGEX`: before the so manieth change of the disk of that kind at a matching path, or,
for `log`, after that line of the log. RECORD_IN is a file that gets every such moment instead.
`doomed_agent.py --nursery` forks such agents on demand, which spares each the time to import.
"""

import ctypes
import json
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DIE_AT = "CASABA_TEST_DIE_AT"
RECORD_IN = "CASABA_TEST_RECORD_IN"

_CHANGES: dict[str, tuple[int, int | None]] = {
    "open": (0, None),
    "os.rename": (1, 3),
    "os.remove": (0, 1),
    "os.mkdir": (0, 2),
    "os.rmdir": (0, 1),
    "os.chmod": (0, 2),
    "os.symlink": (1, 2),
    "socket.bind": (1, None),
}
"""Audit events that change the disk, with the positions of path and folder descriptor."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_PR_SET_PDEATHSIG = 1

Meet = Callable[[str, str], None]


def main() -> int:
    """Run an agent with this process's flags, or the nursery."""
    if sys.argv[1:] == ["--nursery"]:
        return _nursery()
    return _be_agent(sys.argv[1:])


def _be_agent(flags: list[str]) -> int:
    from casaba.cli import node_agent

    if meet := _meeting():
        logging.getLogger("casaba").addHandler(_Listener(meet))
        sys.addaudithook(_hook(meet))
    return node_agent.main(flags)


def _meeting() -> Meet | None:
    """What is to happen at each moment."""
    if record := os.environ.get(RECORD_IN):
        return _recorder(record)
    if wanted := os.environ.get(DIE_AT):
        return _killer(*wanted.split(maxsplit=2))
    return None


def _recorder(record: str) -> Meet:
    file = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def meet(event: str, path: str) -> None:
        os.write(file, f"{event} {path}\n".encode())

    return meet


def _killer(wanted: str, times: str, regex: str) -> Meet:
    left = int(times)
    matches = re.compile(regex).search

    def meet(event: str, path: str) -> None:
        nonlocal left
        if event == wanted and matches(path):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return meet


def _hook(meet: Meet) -> Callable[[str, tuple[Any, ...]], None]:
    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        for path in _changed(event, arguments):
            meet(event, path)

    return hook


def _changed(event: str, arguments: tuple[Any, ...]) -> Iterator[str]:
    """The path that an audit event changes, if it does."""
    if event not in _CHANGES or (event == "open" and not (arguments[2] or 0) & _WRITING):
        return
    position, folder = _CHANGES[event]
    path = arguments[position]
    if isinstance(path, int):
        yield _of_descriptor(path)
    elif isinstance(path, str | bytes | os.PathLike):
        text = os.fsdecode(path)
        above = arguments[folder] if folder is not None else -1
        is_below = not text.startswith("/") and isinstance(above, int) and above >= 0
        yield f"{_of_descriptor(above)}/{text}" if is_below else text


def _of_descriptor(number: int) -> str:
    return str(Path(f"/proc/self/fd/{number}").readlink())


class _Listener(logging.Handler):
    def __init__(self, meet: Meet) -> None:
        super().__init__()
        self._meet = meet

    def emit(self, record: logging.LogRecord) -> None:
        self._meet("log", record.getMessage())


def _nursery() -> int:
    """For each line of stdin, flags, environment and log as JSON, fork an agent.

    Says `born PID` and `died PID STATUS`, a signal being a negative status.
    """
    import casaba.cli.node_agent
    import casaba.services.node_agent.main  # noqa: F401

    signal.signal(signal.SIGCHLD, _tell_deaths)
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os._exit(_child(**order))
        _say(f"born {pid}")
    return 0


def _child(flags: list[str], environment: dict[str, str], log: str) -> int:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.environ.update(environment)
    try:
        return _be_agent(flags)
    except BaseException:
        logging.exception("agent.crashed")
        return 70


def _tell_deaths(*_: object) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say(f"died {pid} {os.waitstatus_to_exitcode(status)}")


def _say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


if __name__ == "__main__":
    raise SystemExit(main())
