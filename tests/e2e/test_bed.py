"""The bed itself: a real cluster whose nodes can be cut off, healed and rebooted."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import cgroups, cleanup, settings
from tests.cluster.bed import Bed, plain_node, up
from tests.cluster.images import SAMPLE
from tests.cluster.settings import BedSettings
from tests.cluster.waiting import wait_until

_POD_TIMEOUT_S = 60.0
# Grace of the node monitor, its period, and the taint that follows.
_NOT_READY_TIMEOUT_S = 60.0
_TRACES_TIMEOUT_S = 10.0


def _pod(name: str, node: str, script: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": SAMPLE, "command": ["bash", "-c", script]}],
        },
    }


def _create(bed: Bed, pod: dict[str, Any]) -> None:
    bed.kubectl("create", "-f", "-", stdin=json.dumps(pod))


def _status(bed: Bed, pod: str) -> dict[str, Any]:
    found = bed.api.object(f"/api/v1/namespaces/default/pods/{pod}")
    return dict(found["status"]) if found else {}


def _restarts_of_running(bed: Bed, pod: str) -> int:
    """How often the pod's container was restarted; -1 while it does not run."""
    containers = _status(bed, pod).get("containerStatuses", [])
    return containers[0]["restartCount"] if containers and containers[0]["ready"] else -1


def _taints(bed: Bed, node: str) -> set[tuple[str, str]]:
    found = bed.api.object(f"/api/v1/nodes/{node}") or {}
    return {(t["key"], t["effect"]) for t in found["spec"].get("taints", [])}


@pytest.fixture
def pod_on_edge_1(bed: Bed) -> Iterator[str]:
    """A running pod that restarts for ever."""
    name = "smoke"
    _create(bed, _pod(name, "edge-1", "echo started; exec sleep 1000000"))
    try:
        wait_until(
            "the pod runs",
            lambda: _restarts_of_running(bed, name) == 0,
            _POD_TIMEOUT_S,
            explain=lambda: bed.kubectl("describe", "pod", name).stdout,
        )
        yield name
    finally:
        bed.kubectl("delete", "pod", name, "--force", "--wait=true")


def test_nodes_carry_the_labels_of_their_kind(bed: Bed) -> None:
    nodes = json.loads(bed.kubectl("get", "nodes", "-o", "json").stdout)["items"]
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in nodes}
    assert {name: told.get("gpu") for name, told in labels.items()} == {
        "edge-1": "on",
        "edge-2": "on",
        "edge-3": None,
    }
    assert all(told["apps.openyurt.io/nodepool"] == "worker" for told in labels.values())


def test_logs_and_exec_reach_a_pod_through_the_api_server(bed: Bed, pod_on_edge_1: str) -> None:
    assert bed.kubectl("logs", pod_on_edge_1).stdout == "started\n"
    told = bed.kubectl("exec", "-i", pod_on_edge_1, "--", "cat", stdin="through and back\n")
    assert told.stdout == "through and back\n"


def test_paths_of_a_node_are_its_own(bed: Bed) -> None:
    first, second = bed.node("edge-1"), bed.node("edge-2")
    first.run_in_namespaces(["/bin/touch", "/run/mark", "/var/lib/mark"])
    for path in ("/run/mark", "/var/lib/mark"):
        assert first.path(path).exists()
        assert not second.path(path).exists()
        assert not Path(path).exists()
        first.path(path).unlink()


@pytest.mark.timeout(180)
def test_a_cut_node_becomes_unreachable_while_its_pods_run_on_and_heals(
    bed: Bed, pod_on_edge_1: str
) -> None:
    node = bed.node("edge-1")
    node.cut()
    try:
        assert node.is_cut()
        unreachable = "node.kubernetes.io/unreachable"
        wait_until(
            "the cut node carries both taints",
            lambda: (
                {(unreachable, "NoSchedule"), (unreachable, "NoExecute")} <= _taints(bed, node.name)
            ),
            _NOT_READY_TIMEOUT_S,
        )
        assert not bed.node_is_ready(node.name)
        assert bed.node_is_ready("edge-2")
    finally:
        node.heal()
    wait_until("the healed node is Ready", lambda: bed.node_is_ready(node.name), _POD_TIMEOUT_S)
    wait_until("the taints are gone", lambda: not _taints(bed, node.name), _POD_TIMEOUT_S)
    assert _restarts_of_running(bed, pod_on_edge_1) == 0


def test_after_a_reboot_a_pod_runs_again_and_run_is_empty(bed: Bed, pod_on_edge_1: str) -> None:
    node = bed.node("edge-1")
    mark = node.path("/run/mark")
    mark.touch()
    boot_id_file = "/proc/sys/kernel/random/boot_id"
    before = node.run_in_namespaces(["/bin/cat", boot_id_file]).stdout
    node.reboot()
    wait_until(
        "the pod runs again", lambda: _restarts_of_running(bed, pod_on_edge_1) == 1, _POD_TIMEOUT_S
    )
    after = node.run_in_namespaces(["/bin/cat", boot_id_file]).stdout
    assert before != after
    assert not mark.exists()

    def reported() -> bool:
        found = bed.api.object(f"/api/v1/nodes/{node.name}") or {}
        return bool(found["status"]["nodeInfo"]["bootID"] == after.strip())

    wait_until("the kubelet reports the new boot id", reported, _POD_TIMEOUT_S)


# -- a second bed beside the first


@pytest.fixture
def wanted(bed: Bed) -> BedSettings:
    """Settings of a small bed of another name."""
    name = f"{bed.settings.name}b"
    return BedSettings(name, settings.default_state(name), (plain_node(1, "edge-1"),))


def _traces(bed: Bed) -> dict[str, set[str]]:
    """What the machine holds of mounts, namespaces and cgroups, but for what is `bed`'s."""
    groups = (place for mount in cgroups.hierarchies() for place, _, _ in os.walk(mount))
    namespaces = Path("/run/netns")
    found = {
        "mounts": set(Path("/proc/self/mounts").read_text().splitlines()),
        "namespaces": {str(path) for path in namespaces.glob("*")},
        "cgroups": set(groups),
        "interfaces": {path.name for path in Path("/sys/class/net").iterdir()},
        "run": {str(path) for path in Path("/run").iterdir() if path != namespaces},
        "files": {str(path) for path in Path("/var/tmp").iterdir()},
    }
    own = re.compile(rf"\b{bed.settings.name}\b")
    return {kind: {name for name in names if not own.search(name)} for kind, names in found.items()}


def _expect_no_new_traces(bed: Bed, before: dict[str, set[str]]) -> None:
    """Some things go a moment after the call that removes them has returned."""

    def new() -> dict[str, set[str]]:
        return {kind: names - before[kind] for kind, names in _traces(bed).items()}

    wait_until(
        "the bed is gone",
        lambda: not any(new().values()),
        _TRACES_TIMEOUT_S,
        explain=lambda: f"Still there: {new()}",
    )


def _network_namespaces() -> dict[int, str]:
    """The network namespace of every live process."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            found[int(process.name)] = str((process / "ns/net").readlink())
    return found


@pytest.mark.timeout(180)
def test_down_leaves_nothing(bed: Bed, wanted: BedSettings) -> None:
    before = _traces(bed)
    other = up(wanted)
    try:
        _create(other, _pod("left", "edge-1", "sleep 1000000 & exec sleep 1000000"))
        wait_until("it runs", lambda: _restarts_of_running(other, "left") == 0, _POD_TIMEOUT_S)
        other.node("edge-1").kill("containerd")  # its shims and containers are orphans now
        running = _network_namespaces()
        bed_pids = cgroups.processes(f"/{wanted.name}")
        inside = {running[pid] for pid in bed_pids & set(running)} - {running[os.getpid()]}
        assert len(inside) == 3, "the cloud's, the node's and the pod's"
    finally:
        other.down()
    assert not inside & set(_network_namespaces().values())
    _expect_no_new_traces(bed, before)


@pytest.mark.timeout(180)
def test_a_start_that_was_killed_is_cleaned_up_by_the_next(bed: Bed, wanted: BedSettings) -> None:
    before, state = _traces(bed), wanted.state
    command = [sys.executable, "-m", "tests.cluster", "--name", wanted.name]
    command += ["up", "--nodes", "0", "--plain-nodes", "1"]
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        half_way = state / "edge-1/daemons/containerd.pid"
        wait_until("it is half-way", half_way.exists, _POD_TIMEOUT_S)
        killed.kill()
        killed.wait()
        other = up(wanted)
        assert other.node_is_ready("edge-1")
    finally:
        killed.kill()
        killed.wait()
        cleanup.remove_everything(wanted.name, state)
    _expect_no_new_traces(bed, before)


def test_a_folder_of_somebody_elses_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    command = [sys.executable, "-m", "tests.cluster", "--state", str(tmp_path)]
    for action in ("up", "down"):
        done = subprocess.run(
            [*command, action], capture_output=True, text=True, check=False, env=os.environ
        )
        assert done.returncode == 1
        assert "not a bed's folder" in done.stderr
    assert (tmp_path / "precious").read_text() == "mine"
