"""The doctor at a machine: with a real agent and simulated cards, and with parts of it spoiled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from casaba.errors import HostError
from casaba.policy.diagnosis import Finding, Unanswered, Unseen
from casaba.services.doctor.containerd import cdi_enabled
from casaba.services.doctor.host import examine_host
from casaba.services.doctor.host_files import look_at_room
from casaba.services.doctor.looking import aside, seen
from casaba.settings.doctor import DoctorSettings
from casaba.settings.host_paths import HostPaths
from tests.component.doctor.clinic import Run, doctor
from tests.component.node_agent.live_node import DRIVER, IMAGE, LiveNode, live_node, share
from tests.component.simulation.kubelets import shell

NOT_HERE = {"node.run", "node.clock", "node.toolkit"}
"""What depends on the machine that runs the tests."""


def flags(live: LiveNode, root: Path, driver: Path) -> list[str]:
    """Where the node's things are."""
    paths = live.host.paths
    return [
        *("--node", "--json", f"--host-root={root}", f"--driver-root={driver}"),
        *(f"--kubelet-dir={paths.kubelet_dir}", f"--cdi-dir={paths.cdi_dir}"),
        *(f"--run-dir={paths.run_dir}", f"--state-dir={paths.state_dir}"),
    ]


async def look(live: LiveNode, root: Path, driver: Path | None = None) -> Run:
    """Examine the node."""
    return await doctor(*flags(live, root, driver or live.host.driver), **live.host.environment())


def states(run: Run) -> dict[str, str]:
    return {check: state for check, state in run.states().items() if check not in NOT_HERE}


@asynccontextmanager
async def prepared_node(folder: Path) -> AsyncIterator[LiveNode]:
    """With a pod that has a slice."""
    async with live_node(folder) as live:
        await live.until_devices(["hami-gpu-0"])
        await live.node.add_claim("half", share(), driver=DRIVER)
        pod = await live.node.run_pod(
            shell("sleep 600 & wait", "half", image=IMAGE), claims=["half"]
        )
        await live.node.pod_in_phase(pod, "Running")
        yield live


async def test_a_node_that_is_well(short_folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "etc" / "containerd" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('version = 3\n[plugins."io.containerd.cri.v1.runtime"]\nenable_cdi = true\n')
    async with prepared_node(short_folder) as live:
        run = await look(live, tmp_path)
    assert set(states(run).values()) == {"ok"}, run.out
    told = {one["id"]: one["seen"] for one in run.report["findings"]}
    assert "NVIDIA A10" in told["node.nvml"]
    assert told["node.checkpoint"] == "1 prepared claim"
    assert "CDI is on" in told["node.runtime"]


async def test_a_node_that_is_spoiled(short_folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "etc" / "containerd" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = false\n')
    (tmp_path / "usr" / "local" / "vgpu").mkdir(parents=True)
    (tmp_path / "etc" / "ld.so.preload").write_text("/usr/local/vgpu/libvgpu.so\n")
    async with prepared_node(short_folder) as live:
        (live.host.paths.cdi_dir / "other.json").write_text("{")
        (live.host.paths.state_dir / "guard" / "0.1-half").mkdir()
        (live.host.paths.checkpoint_dir / "x.json").write_text("garbage")
        run = await look(live, tmp_path, driver=tmp_path)
    found = states(run)
    assert run.code == 1
    assert found["node.driver"] == found["node.cdi"] == found["node.runtime"] == "wrong"
    assert found["node.guard-files"] == "wrong"
    assert found["node.checkpoint"] == found["node.leftovers"] == "warning"
    assert found["node.nvml"] == "skipped"
    assert found["node.agent"] == found["node.kubelet"] == "ok"
    told = {one["id"]: one["seen"] for one in run.report["findings"]}
    assert "other.json (no JSON)" in told["node.cdi"]
    assert str(tmp_path / "etc" / "ld.so.preload") in told["node.leftovers"]


async def examined(settings: DoctorSettings) -> dict[str, Finding]:
    return {one.id: one for one in await examine_host(settings)}


def settings(folder: Path, **changes: Path) -> DoctorSettings:
    paths = HostPaths(
        run_dir=folder / "run",
        state_dir=folder / "state",
        kubelet_dir=folder / "kubelet",
        cdi_dir=folder / "cdi",
    )
    return DoctorSettings(paths=paths, host_root=folder, **changes)  # type: ignore[arg-type]


async def test_a_bare_machine(tmp_path: Path) -> None:
    found = await examined(settings(tmp_path))
    assert found["node.driver"].state == found["node.cdi"].state == "wrong"
    assert found["node.kubelet"].state == found["node.guard-files"].state == "wrong"
    assert found["node.agent"].state == "unknown"
    assert "no node agent answers" in found["node.agent"].seen
    for finding in found.values():
        assert finding.advice or finding.state in ("ok", "skipped")


async def test_a_wrong_driver_root_names_the_right_one(tmp_path: Path) -> None:
    library = tmp_path / "run" / "nvidia" / "driver" / "usr" / "lib64" / "libnvidia-ml.so.1"
    library.parent.mkdir(parents=True)
    library.touch()
    found = await examined(settings(tmp_path, driver_root=tmp_path / "host"))
    assert found["node.driver"].state == "wrong"
    assert f"--driver-root={tmp_path / 'run/nvidia/driver'}" in found["node.driver"].advice
    right = await examined(settings(tmp_path))
    assert right["node.driver"].state == "ok"
    assert right["node.nvml"].state == "unknown", "an empty file is no library"


@pytest.mark.parametrize(
    ("content", "enabled"),
    [
        ("", None),
        ("version = 3\n", None),
        ('[plugins."io.containerd.cri.v1.runtime"]\nenable_cdi = false\n', False),
        ('[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = true\n', True),
        ('[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = "yes"\n', None),
        ("plugins = 3\n", None),
    ],
)
def test_what_containerds_configuration_says_of_cdi(content: str, enabled: bool | None) -> None:
    assert cdi_enabled(content) is enabled


async def test_a_configuration_that_is_no_toml(tmp_path: Path) -> None:
    config = tmp_path / "etc" / "containerd" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[[[")
    assert (await examined(settings(tmp_path)))["node.runtime"].state == "unknown"


def test_room_of_a_folder_that_is_yet_to_be_made(tmp_path: Path) -> None:
    assert all(one.free_bytes > 0 for one in look_at_room(settings(tmp_path / "a" / "b")))


async def test_one_that_hangs_is_left_alone() -> None:
    import threading

    release = threading.Event()
    try:
        found = await seen(aside(lambda: release.wait()), 0.05)
    finally:
        release.set()
    assert found == Unanswered("no answer within 0.05 s")


async def test_whatever_is_raised_is_a_reason() -> None:
    def fail(error: Exception) -> None:
        raise error

    assert await seen(aside(lambda: fail(HostError("a sentence"))), 30) == Unseen("a sentence")
    assert await seen(aside(lambda: fail(KeyError("x"))), 30) == Unseen("KeyError: 'x'")
    denied = await seen(aside(lambda: fail(PermissionError(13, "denied", "/etc/x"))), 30)
    assert denied == Unseen("/etc/x: denied")
