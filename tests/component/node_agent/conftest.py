"""A claim server on real files and real sockets; only the API server's answers are given."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from casaba.model.ids import BootId
from casaba.net.dra_sockets import DraServer, SocketPaths, socket_paths
from casaba.node.checkpoint import Checkpoint
from casaba.policy.prepare import NodeFacts
from casaba.services.node_agent.claims import ClaimServer
from casaba.services.node_agent.host import ClaimFiles
from casaba.settings.budgets import BudgetSettings
from casaba.settings.host_paths import HostPaths
from casaba.wire.kubernetes import ResourceClaim
from tests.unit.values import A10, NODE

DRIVER = "hami-core-gpu.project-hami.io"


@dataclass
class NodeUnderTest:
    """The host's folders, and the claims that the API server has, by name."""

    paths: HostPaths
    claims: dict[str, dict[str, Any]] = field(default_factory=dict)
    boot_id: str = "first-boot"
    room_wait_s: float = 0.0
    on_read: Callable[[str], None] = lambda _: None
    """Hears the name of each claim that the agent reads."""

    def add_claim(self, name: str, uid: str, *results: dict[str, Any]) -> None:
        """Let the API server have an allocated claim."""
        self.claims[name] = {
            "metadata": {"namespace": "default", "name": name, "uid": uid},
            "status": {"allocation": {"devices": {"results": list(results) or [result()]}}},
        }

    def agent(self) -> ClaimServer:
        """A newly started agent."""

        async def read_claim(namespace: str, name: str) -> ResourceClaim:
            self.on_read(name)
            return msgspec.convert(self.claims[name], ResourceClaim)

        facts = NodeFacts(
            node=NODE,
            gpus={A10.device_name: A10},
            guard_version="0.1.0-test",
            claims_dir=self.paths.claims_dir,
            budget_settings=BudgetSettings(),
        )
        return ClaimServer(
            read_claim=read_claim,
            files=ClaimFiles(self.paths),
            facts=facts,
            boot_id=BootId(self.boot_id),
            entries=Checkpoint(self.paths.checkpoint_dir).load(),
            room_wait_s=self.room_wait_s,
        )

    def leftovers(self) -> list[str]:
        """Everything on the host that belongs to a claim."""
        roots = (self.paths.claims_dir, self.paths.cdi_dir, self.paths.checkpoint_dir)
        found = [path for root in roots if root.exists() for path in root.rglob("*")]
        return sorted(str(path.relative_to(self.paths.run_dir.parent)) for path in found)


def result(memory: str = "10Gi", cores: str = "50", request: str = "gpu") -> dict[str, Any]:
    """One allocation result of the node's card."""
    return {
        "request": request,
        "driver": DRIVER,
        "pool": NODE,
        "device": "hami-gpu-0",
        "shareID": "3c0f1a52-0000-0000-0000-000000000000",
        "consumedCapacity": {"cores": cores, "memory": memory},
    }


@pytest.fixture
def node(tmp_path: Path) -> NodeUnderTest:
    """A node with folders of its own."""
    return NodeUnderTest(
        paths=HostPaths(
            run_dir=tmp_path / "run",
            state_dir=tmp_path / "state",
            kubelet_dir=tmp_path / "kubelet",
            cdi_dir=tmp_path / "cdi",
        )
    )


Serve = Callable[[], AbstractAsyncContextManager[SocketPaths]]


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="casaba-") as folder:
        yield Path(folder)


@pytest.fixture
def serve(node: NodeUnderTest, short_folder: Path) -> Serve:
    """Starts an agent on its two sockets."""

    @asynccontextmanager
    async def start() -> AsyncIterator[SocketPaths]:
        paths = socket_paths(short_folder, short_folder, None)
        async with DraServer(node.agent(), paths, lambda _: None):
            yield paths

    return start
