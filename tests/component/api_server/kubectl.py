"""The real kubectl, run as a person would."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casaba.simulation.api_server.server import SimulatedApiServer

KUBECTL = Path(sys.executable).parent / "kubectl"
_TIMEOUT_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Said:
    """How a run ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def table(self) -> list[list[str]]:
        """The rows printed, in words, without the ages of things."""
        return [line.split() for line in self.out.splitlines() if line]


@dataclass(frozen=True, kw_only=True)
class Kubectl:
    """kubectl with a kubeconfig and a folder of its own."""

    kubeconfig: Path
    folder: Path

    async def __call__(self, *args: str, stdin: str = "") -> Said:
        """Run it to its end."""
        async with self.running(*args) as process, asyncio.timeout(_TIMEOUT_S):
            out, err = await process.communicate(stdin.encode())
        return Said(code=process.returncode or 0, out=out.decode(), err=err.decode())

    async def ok(self, *args: str, stdin: str = "") -> str:
        """Run it, expecting success; what it printed."""
        said = await self(*args, stdin=stdin)
        assert said.code == 0, said.err
        return said.out.strip()

    async def refused(self, *args: str, stdin: str = "") -> str:
        """Run it, expecting failure; what it said was wrong."""
        said = await self(*args, stdin=stdin)
        assert said.code != 0, said.out
        return said.err.strip()

    @asynccontextmanager
    async def running(self, *args: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """While it runs; it is killed if it has not ended by itself."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            KUBECTL,
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self.folder / 'cache'}",
            *args,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=self.folder,
            env=self._environment(),
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    def write(self, name: str, document: Any) -> str:
        """A manifest in the folder; its name."""
        (self.folder / name).write_text(json.dumps(document))
        return name

    def _environment(self) -> Mapping[str, str]:
        """Without the person's own settings."""
        return {"HOME": str(self.folder), "PATH": os.environ["PATH"]}


def kubectl_of(server: SimulatedApiServer, folder: Path) -> Kubectl:
    """The administrator's kubectl; `folder` holds its kubeconfig and manifests."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(server.kubeconfig("admin", ["system:masters"])))
    return Kubectl(kubeconfig=kubeconfig, folder=folder)
