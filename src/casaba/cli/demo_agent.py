"""The demo's node agents: the real service, a process for each simulated node."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from casaba.errors import HostError
from casaba.simulation.gpu_node import GpuNode

END_S = 10.0
"""What an agent gets to end by itself."""

_LAST_LINES = 5
_PR_SET_PDEATHSIG = 1


@asynccontextmanager
async def node_agents(nodes: Sequence[GpuNode], folder: Path) -> AsyncIterator[None]:
    """Run an agent per node until the block ends; their logs lie in the folder.

    Raises HostError, with the agent's last words, when one ends while the block runs.
    """
    async with AsyncExitStack() as stack:
        for node in nodes:
            log = folder / f"agent-{node.settings.name}.log"
            process = await stack.enter_async_context(_agent(node, log))
            await stack.enter_async_context(_watched(process, node, log))
        yield


@asynccontextmanager
async def _agent(node: GpuNode, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("wb") as output:
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


@asynccontextmanager
async def _watched(
    process: asyncio.subprocess.Process, node: GpuNode, log: Path
) -> AsyncIterator[None]:
    """Break off the block when the agent ends before it."""
    async with asyncio.TaskGroup() as group:
        watch = group.create_task(_complain_at_end(process, node, log))
        yield
        watch.cancel()


async def _complain_at_end(process: asyncio.subprocess.Process, node: GpuNode, log: Path) -> None:
    code = await process.wait()
    words = " | ".join(log.read_text(errors="replace").splitlines()[-_LAST_LINES:])
    name = node.settings.name
    raise HostError(f"the node agent of {name} ended with {code}: {words or 'it said nothing'}")
