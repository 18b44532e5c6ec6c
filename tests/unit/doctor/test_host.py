"""Each check of a machine: what is seen, and what it is taken for."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from casaba.model.problem import Problem
from casaba.model.slice_use import ContainerName, GuardState
from casaba.policy.diagnosis import Finding, Unseen, exit_code
from casaba.policy.diagnosis.host.observations import (
    CdiSeen,
    CheckpointSeen,
    DriverSeen,
    GuardSeen,
    KubeletSeen,
    NvmlSeen,
    RoomSeen,
    RuntimeSeen,
    ToolkitSeen,
)
from casaba.policy.diagnosis.host.tables import HOST_CHECKS, diagnose_host
from casaba.wire.node_report import NodeReport
from tests.unit.doctor.healthy import HOST, REPORT
from tests.unit.values import A10

TENANT = ContainerName(pod="tenant", container="main")
NO_TOOLKIT = ToolkitSeen(programs=(), missing="no nvidia-ctk in PATH")


def driver(root: str, *elsewhere: str) -> dict[str, Any]:
    return {"driver": DriverSeen(root=root, library=None, elsewhere=elsewhere)}


def cdi(**changes: Any) -> dict[str, Any]:
    assert isinstance(HOST.cdi, CdiSeen)
    return {"cdi": replace(HOST.cdi, **changes)}


def runtime(version: str | None, enabled: bool | None = None) -> dict[str, Any]:
    return {"runtime": RuntimeSeen(version=version, source="config.toml", cdi_enabled=enabled)}


def kubelet(**changes: Any) -> dict[str, Any]:
    assert isinstance(HOST.kubelet, KubeletSeen)
    return {"kubelet": replace(HOST.kubelet, **changes)}


def report(**changes: Any) -> dict[str, NodeReport]:
    use = replace(REPORT.use, **changes.pop("use", {}))
    return {"agent": replace(REPORT, use=use, **changes)}


def guard(unguarded: int) -> GuardState:
    return GuardState(namespace="team", name=TENANT, guarded=1, unguarded=unguarded)


MISSING = Problem(reason="DriverMissing", message="no driver; install it")
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("node.driver", driver("/"), "wrong", "no libnvidia-ml.so.1 below /"),
    ("node.driver", driver("/", "/run/nvidia/driver"), "wrong", "but below /run/nvidia/driver"),
    ("node.nvml", driver("/"), "skipped", ""),
    ("node.nvml", {"nvml": NvmlSeen(driver_version="390.157", cards=("A",))}, "wrong", "390.157"),
    ("node.nvml", {"nvml": NvmlSeen(driver_version="580.1", cards=())}, "wrong", "no card"),
    ("node.nvml", {"nvml": NvmlSeen(driver_version="?", cards=())}, "wrong", "?"),
    ("node.toolkit", {"toolkit": NO_TOOLKIT}, "skipped", "the agent has its own"),
    ("node.toolkit", {"toolkit": NO_TOOLKIT, "agent": Unseen("x")}, "wrong", "no nvidia-ctk"),
    ("node.cdi", cdi(damaged=("/etc/cdi/x.yaml (no YAML)",)), "wrong", "x.yaml (no YAML)"),
    ("node.cdi", cdi(exists=False), "wrong", "no /var/run/cdi"),
    ("node.cdi", cdi(specs=("casaba.dev-guard.json",)), "wrong", "no casaba.dev-card.json"),
    ("node.runtime", runtime("2.1.4", enabled=False), "wrong", "CDI is off"),
    ("node.runtime", runtime(None, enabled=True), "ok", "CDI is on"),
    ("node.runtime", runtime("1.7.27"), "wrong", "off by default"),
    ("node.runtime", runtime("1.7.27", enabled=True), "ok", "CDI is on"),
    ("node.runtime", runtime("1.6.20"), "wrong", "knows no CDI"),
    ("node.runtime", runtime(None), "skipped", ""),
    ("node.kubelet", kubelet(has_registry=False), "wrong", "plugins_registry"),
    ("node.kubelet", kubelet(plugin_sockets=()), "wrong", "no sockets"),
    ("node.kubelet", kubelet(pods_told="it does not answer"), "warning", "it does not answer"),
    ("node.agent", report(problems=(MISSING,)), "wrong", "DriverMissing: no driver; install it"),
    ("node.agent", report(registered=False), "wrong", "not registered"),
    ("node.agent", {"agent": Unseen("no agent answers")}, "unknown", "no agent answers"),
    ("node.guards", report(use={"guards": (guard(2),)}), "wrong", "team/tenant main (2)"),
    ("node.guards", report(use={"guards": (guard(0),)}), "ok", ""),
    ("node.guards", report(use={"foreign": {A10.uuid: 3}}), "warning", "3"),
    ("node.guard-files", {"guard": GuardSeen(folder="/g", whole=(), broken=())}, "wrong", "/g"),
    ("node.guard-files", {"guard": GuardSeen(folder="/g", whole=(), broken=("v",))}, "wrong", "v"),
    (
        "node.checkpoint",
        {"checkpoint": CheckpointSeen(folder="/c", entries=1, damaged=("x.json",))},
        "warning",
        "x.json",
    ),
    (
        "node.checkpoint",
        {"checkpoint": CheckpointSeen(folder="/c", entries=0, damaged=(), unreadable="can't")},
        "wrong",
        "can't",
    ),
    ("node.run", {"run_filesystem": ("/run/casaba", "ext4")}, "warning", "ext4"),
    ("node.clock", {"clock_is_set": False}, "warning", "clock"),
    ("node.leftovers", {"leftovers": ("/usr/local/vgpu",)}, "warning", "/usr/local/vgpu"),
    (
        "node.room",
        {"room": (RoomSeen(folder="/r", free_bytes=1 << 20, needed_bytes=1 << 26),)},
        "wrong",
        "/r (1 MiB)",
    ),
]


def found(check: str, changes: dict[str, Any]) -> Finding:
    (one,) = (one for one in diagnose_host(replace(HOST, **changes)) if one.id == check)
    return one


def test_nothing_is_wrong_with_a_healthy_node() -> None:
    findings = diagnose_host(HOST)
    assert {one.state for one in findings} == {"ok"}
    assert exit_code(findings) == 0


@pytest.mark.parametrize(("check", "changes", "state", "words"), CASES)
def test_a_check(check: str, changes: dict[str, Any], state: str, words: str) -> None:
    finding = found(check, changes)
    assert (finding.state, words in finding.seen) == (state, True), finding
    assert finding.advice or state not in ("wrong", "warning")
    assert not finding.advice.endswith(".")


def test_each_check_is_in_the_table_of_cases() -> None:
    wrong = {check for check, _, state, _ in CASES if state in ("wrong", "warning")}
    assert wrong == {check.id for check in HOST_CHECKS}


def test_the_advice_names_the_right_section_of_containerds_configuration() -> None:
    assert "io.containerd.grpc.v1.cri" in found("node.runtime", runtime("1.7.27")).advice
    assert "io.containerd.cri.v1.runtime" in found("node.runtime", runtime("2.0.1", False)).advice


def test_the_advice_names_the_right_value_of_the_chart() -> None:
    operator = found("node.driver", driver("/", "/run/nvidia/driver")).advice
    assert "--driver-root=/run/nvidia/driver" in operator
    assert "drivers.nvidia.containerDriver=true" in operator
    host = found("node.driver", driver("/run/nvidia/driver", "/")).advice
    assert "drivers.nvidia.containerDriver=false" in host


@pytest.mark.parametrize("what", [one.name for one in fields(HOST)])
def test_one_that_is_not_seen_leaves_the_others_alone(what: str) -> None:
    hidden: dict[str, Any] = {what: Unseen("no right to look")}
    after = diagnose_host(replace(HOST, **hidden))
    changed = [now for now, then in zip(after, diagnose_host(HOST), strict=True) if now != then]
    assert changed
    assert all((one.state, one.seen) == ("unknown", "no right to look") for one in changed)
    assert exit_code(after) == 3
