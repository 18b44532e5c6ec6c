"""The demo's node agents: the real service, a process for each simulated node."""

import asyncio
import ctypes
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from casaba.aiokit import running_beside
from casaba.errors import HostError
from casaba.simulation.gpu_node import GpuNode

log = logging.getLogger(__name__)

END_S = 10.0
"""What an agent gets to end by itself."""

SHORTEST_LIFE_S = 3.0
"""An agent that ends sooner would do so again."""

_PR_SET_PDEATHSIG = 1


@asynccontextmanager
async def node_agents(nodes: Sequence[GpuNode], folder: Path) -> AsyncIterator[None]:
    """Run an agent per node until the block ends; their logs lie in the folder.

    One that ends is started again, as a service manager does. Raises HostError, with the agent's
    last words, when it ended right after its start.
    """
    async with running_beside(*(_keep_running(node, folder) for node in nodes)):
        yield


async def _keep_running(node: GpuNode, folder: Path) -> None:
    name = node.settings.name
    path = folder / f"agent-{name}.log"
    while True:
        started_s = time.monotonic()
        async with _agent(node, path) as process:
            code = await process.wait()
        if time.monotonic() - started_s < SHORTEST_LIFE_S:
            raise HostError(f"the node agent of {name} ended with {code}: {_last_words(path)}")
        log.warning("agent.ended", extra={"node": name, "code": code})


@asynccontextmanager
async def _agent(node: GpuNode, path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    with path.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "casaba", "node-agent", *node.agent_flags()),
            env={**os.environ, **node.environment()},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=_end_with_parent,
        )
    try:
        yield process
    finally:
        await _end(process)


def _end_with_parent() -> None:
    """In the child: end when this process does, however that ends (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(END_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _last_words(path: Path) -> str:
    lines = path.read_text(errors="replace").splitlines()
    return lines[-1] if lines else "it said nothing"
