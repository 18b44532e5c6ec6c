"""The agent is killed at every step it takes on the disk; the next one has a whole node."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casaba.model.ids import BootId, ClaimUid
from casaba.net.dra_sockets import ClaimReference
from casaba.node.checkpoint import Checkpoint
from casaba.services.node_agent.host import sweep_host
from casaba.wire.region_file import REGION_BYTES
from tests.component.node_agent.conftest import NodeUnderTest

UID = "11111111-2222-3333-4444-555555555555"
REFERENCE = ClaimReference(namespace="default", name="half", uid=UID)
FILE_EVENTS = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod"})
MOST_STEPS = 200


def kill_at(step: int, folder: Path) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that ends this process before its n-th change below a folder."""
    steps_left = step

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal steps_left
        relative = event in FILE_EVENTS and not str(arguments[0]).startswith("/")
        if relative or (event in FILE_EVENTS and str(arguments[0]).startswith(str(folder))):
            steps_left -= 1
            if steps_left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


def run_and_kill(node: NodeUnderTest, step: int, action: str) -> bool:
    """Whether a child that was to be killed at a step came to the end before it."""
    child = os.fork()
    if child == 0:
        agent = node.agent()
        sys.addaudithook(kill_at(step, node.paths.run_dir.parent))
        asyncio.run(getattr(agent, action)([REFERENCE]))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status)


def sweep(node: NodeUnderTest) -> None:
    """What a restarted agent does before it serves; it finds no claim that nobody knows of."""
    entries = Checkpoint(node.paths.checkpoint_dir).load()
    plan = sweep_host(node.paths, entries, BootId(node.boot_id))
    assert plan.claim_folders == ()
    assert all(name.startswith(".") for name in plan.spec_files)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("action", ["prepare", "unprepare"])
def test_killed_anywhere(node: NodeUnderTest, action: str) -> None:
    node.add_claim("half", UID)
    for step in range(MOST_STEPS):
        if action == "unprepare":
            asyncio.run(node.agent().prepare([REFERENCE]))
        finished = run_and_kill(node, step, action)
        sweep(node)
        answer = asyncio.run(node.agent().prepare([REFERENCE]))[ClaimUid(UID)]
        assert isinstance(answer, tuple)
        assert (node.paths.claims_dir / UID / "gpu" / "region").stat().st_size == REGION_BYTES
        assert asyncio.run(node.agent().unprepare([REFERENCE]))[ClaimUid(UID)] is None
        assert [name for name in node.leftovers() if "/." not in name] == []
        if finished:
            assert step > 5
            return
    pytest.fail(f"not finished within {MOST_STEPS} steps")


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A file system of 128 KiB below `run`, too small for a region with its policy."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    target = tmp_path / "run"
    target.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", target], check=True)
    yield target
    subprocess.run(["umount", "--lazy", target], check=True)


def test_a_full_disk_is_a_claim_error_and_leaves_nothing(
    small_disk: Path, node: NodeUnderTest
) -> None:
    node.add_claim("half", UID)
    (small_disk / "other").write_bytes(b"x" * 60_000)
    answer = asyncio.run(node.agent().prepare([REFERENCE]))[ClaimUid(UID)]
    assert isinstance(answer, str)
    assert "No space left on device" in answer
    assert str(node.paths.claims_dir) in answer
    assert node.leftovers() == []
    (small_disk / "other").unlink()
    assert isinstance(asyncio.run(node.agent().prepare([REFERENCE]))[ClaimUid(UID)], str)


def test_a_damaged_entry_is_put_aside(node: NodeUnderTest) -> None:
    node.add_claim("half", UID)
    asyncio.run(node.agent().prepare([REFERENCE]))
    entry = node.paths.checkpoint_dir / f"{UID}.json"
    entry.write_bytes(entry.read_bytes()[:-10])
    assert isinstance(asyncio.run(node.agent().prepare([REFERENCE]))[ClaimUid(UID)], tuple)
    assert entry.with_suffix(".damaged").exists()
