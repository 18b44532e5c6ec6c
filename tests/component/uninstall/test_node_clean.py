"""A node on which an agent has served claims, and then `casaba node-clean`."""

import itertools
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

import pytest

from casaba.cli import node_clean
from casaba.net.dra_sockets import ClaimReference, socket_paths
from casaba.node.checkpoint import Checkpoint
from casaba.node.files import make_folder
from casaba.services.node_agent.host import make_host_ready
from casaba.services.uninstall.node import clean_node
from casaba.settings.host_paths import HostPaths
from casaba.settings.node_agent import NodeAgentSettings
from casaba.settings.uninstall import NodeCleanSettings
from casaba.wire import cdi
from tests.component.node_agent.conftest import NodeUnderTest

UID = "11111111-2222-3333-4444-555555555555"
CLAIM = ClaimReference(namespace="default", name="half", uid=UID)
OTHERS = (
    "var/run/cdi/nvidia.yaml",
    "var/lib/kubelet/plugins_registry/gpu.nvidia.com-reg.sock",
    "var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json",
    "run/other/file",
)


@dataclass
class Host:
    """A host's root in a folder."""

    root: Path

    @property
    def paths(self) -> HostPaths:
        """Where the agent has its things, which sees the host at this folder."""
        return HostPaths(
            run_dir=self.root / "run/casaba",
            state_dir=self.root / "var/lib/casaba",
            kubelet_dir=self.root / "var/lib/kubelet",
            cdi_dir=self.root / "var/run/cdi",
        )

    def files(self) -> dict[str, bytes]:
        """Everything that lies there."""
        return {
            str(path.relative_to(self.root)): path.read_bytes() if path.is_file() else b""
            for path in self.root.rglob("*")
        }

    async def serve(self, *, unprepare: bool) -> None:
        """What an agent leaves that was killed after it has served a claim."""
        card_spec = self.root.parent / "card.json"
        card_spec.write_text('{"kind": "casaba.dev/card"}')
        settings = NodeAgentSettings(node_name="n", paths=self.paths, card_spec=card_spec)
        make_host_ready(settings)
        shutil.copy(card_spec, self.paths.cdi_dir / cdi.CARD_SPEC_FILE)
        (self.paths.cdi_dir / f".{cdi.GUARD_SPEC_FILE}.abcd").write_text("{")
        node = NodeUnderTest(paths=self.paths)
        node.add_claim("half", UID)
        agent = node.agent()
        assert await agent.prepare([CLAIM])
        if unprepare:
            await agent.unprepare([CLAIM])
        else:
            assert Checkpoint(self.paths.checkpoint_dir).load()
        for path in _sockets(self.paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            with socket.socket(socket.AF_UNIX) as left:
                left.bind(str(path))

    def clean(self, *flags: str) -> int:
        """Run the command."""
        return node_clean.main([f"--host-root={self.root}", *flags])


def _sockets(paths: HostPaths) -> list[Path]:
    found = [socket_paths(paths.plugin_dir, paths.registry_dir, uid) for uid in (None, "pod-1")]
    return [path for one in found for path in (one.dra, one.registration)]


@pytest.fixture
def host(short_folder: Path) -> Host:
    root = short_folder / "h"
    for name in OTHERS:
        make_folder((root / name).parent)
        (root / name).write_text("not ours")
    return Host(root)


async def test_nothing_of_ours_is_left(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = host.files()
    await host.serve(unprepare=True)
    assert host.files() != before
    assert host.clean() == 0
    assert host.files() == before
    told = capsys.readouterr().out.splitlines()
    assert "removed: /run/casaba" in told
    assert "removed: /var/run/cdi/casaba.dev-card.json" in told
    assert all(line.startswith("removed: /") for line in told)


async def test_done_again_it_finds_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    await host.serve(unprepare=True)
    assert host.clean() == 0
    capsys.readouterr()
    assert host.clean() == 0
    assert capsys.readouterr().out == "nothing of casaba is here\n"


async def test_a_prepared_claim_is_spared(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    await host.serve(unprepare=False)
    before = host.files()
    assert host.clean() == 1
    assert host.files() == before
    told = capsys.readouterr().err
    assert UID in told
    assert "delete the pods" in told


async def test_by_force_it_goes_too(host: Host) -> None:
    before = host.files()
    await host.serve(unprepare=False)
    assert host.clean("--force") == 0
    assert host.files() == before


async def test_killed_at_any_removal_it_is_done_again(host: Host) -> None:
    before = host.files()
    settings = NodeCleanSettings(host_root=host.root)
    await host.serve(unprepare=True)
    for done in range(len(list(clean_node(settings)))):
        await host.serve(unprepare=True)
        assert len(list(itertools.islice(clean_node(settings), done))) == done
        assert host.clean() == 0
        assert host.files() == before


async def test_killed_by_force_it_still_knows_of_the_claims(host: Host) -> None:
    """What is prepared is forgotten last."""
    await host.serve(unprepare=False)
    removals = clean_node(NodeCleanSettings(host_root=host.root, force=True))
    for line in removals:
        if line == "removed: /run/casaba":
            break
    assert host.clean() == 1
    assert host.clean("--force") == 0


async def test_a_kubelet_folder_elsewhere(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """The host's link leads to what the cleaner does not see: it says so and does the rest."""
    await host.serve(unprepare=True)
    shutil.rmtree(host.paths.kubelet_dir)
    host.paths.kubelet_dir.symlink_to("/data/kubelet")
    assert host.clean() == 0
    told = capsys.readouterr().out
    assert "not seen: /var/lib/kubelet/plugins is below a link out of" in told
    assert not host.paths.run_dir.exists()


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("--host-root=host", "give a path from / on"),
        ("--run-dir=/run/../etc", "without .."),
        ("--state-dir=/var", "it is removed whole"),
    ],
)
def test_wrong_folders_are_refused(
    host: Host, capsys: pytest.CaptureFixture[str], flag: str, told: str
) -> None:
    assert host.clean(flag) == 2
    assert told in capsys.readouterr().err


def test_a_root_that_is_not_there(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert node_clean.main([f"--host-root={host.root}-not"]) == 3
    assert "No such file" in capsys.readouterr().err
