"""Agents as real processes, each with the moment at which it is to die."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.component.node_agent import doomed_agent

KILLED = -signal.SIGKILL


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Before the so manieth change of the disk of a kind, or after a line of the log (`log`)."""

    event: str
    path: str
    """A regular expression."""
    times: int = 1

    def environment(self) -> dict[str, str]:
        """What makes a doomed agent die then."""
        return {doomed_agent.DIE_AT: f"{self.event} {self.times} {self.path}"}

    def __str__(self) -> str:
        return f"{self.event} {self.path} ({self.times})"


@dataclass(frozen=True, kw_only=True)
class Agent:
    """One agent's process."""

    pid: int
    log: Path
    ended: "asyncio.Future[int]"
    """Its exit status, a signal being negative."""

    def kill(self) -> None:
        """SIGKILL."""
        if not self.ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def said(self, event: str) -> bool:
        """Whether its log has a line of that name."""
        return f'"event":"{event}"' in self.log.read_text()


@dataclass
class Nursery:
    """Forks agents; each writes a log of its own in `folder`."""

    folder: Path
    _process: asyncio.subprocess.Process
    _ended: "defaultdict[int, asyncio.Future[int]]" = field(init=False)
    _born: "asyncio.Queue[int]" = field(default_factory=asyncio.Queue)
    _count: int = 0

    def __post_init__(self) -> None:
        self._ended = defaultdict(asyncio.get_running_loop().create_future)

    async def start(self, flags: Sequence[str], environment: Mapping[str, str]) -> Agent:
        """A new agent; it does not serve yet."""
        self._count += 1
        log = self.folder / f"agent-{self._count}.log"
        order = {"flags": list(flags), "environment": dict(environment), "log": str(log)}
        log.touch()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        pid = await self._born.get()
        return Agent(pid=pid, log=log, ended=self._ended[pid])

    async def listen(self) -> None:
        """Never returns before the nursery has ended."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            word, *numbers = line.split()
            if word == b"born":
                self._born.put_nowait(int(numbers[0]))
            else:
                self._ended[int(numbers[0])].set_result(int(numbers[1]))


@asynccontextmanager
async def nursery(folder: Path) -> AsyncIterator[Nursery]:
    """A nursery until the block ends, and its agents with it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, doomed_agent.__file__, "--nursery"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    made = Nursery(folder, process)
    listening = asyncio.create_task(made.listen())
    try:
        yield made
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await listening


def recorded_moments(record: str) -> list[Moment]:
    """The moments of an agent's life, in order, each kind once.

    Paths become patterns: UIDs and the random part of temporary names are others next time.
    """
    pairs = (line.partition(" ") for line in record.splitlines())
    kinds = dict.fromkeys((event, _pattern(path)) for event, _, path in pairs)
    return [Moment(event=event, path=path) for event, path in kinds]


def _pattern(path: str) -> str:
    uid = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    text = re.sub(uid, "<uid>", path)
    text = re.sub(r"(/\.[^/]+)\.[a-z0-9_]{8}$", r"\1.<random>", text)
    return f"^{re.escape(text).replace('<uid>', uid).replace('<random>', '[a-z0-9_]{8}')}$"
