"""`casaba doctor` on the real cluster: run where people run it, and what it reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.cluster.bed import Bed
from tests.cluster.node import Node
from tests.cluster.waiting import wait_until
from tests.e2e.releases import NAMESPACE
from tests.e2e.workloads import POD_TIMEOUT_S

CASABA = str(Path(sys.executable).parent / "casaba")

Finding = dict[str, str]


@dataclass(frozen=True)
class Report:
    """What a doctor told a program, or a person."""

    code: int
    out: str

    @property
    def findings(self) -> dict[str, Finding]:
        """By check, of --json."""
        told = json.loads(self.out)
        assert told["exit_code"] == self.code
        return {one["id"]: one for one in told["findings"]}

    def wrong(self) -> set[str]:
        return {check for check, one in self.findings.items() if one["state"] == "wrong"}

    def line(self, sign: str, title: str) -> str:
        """The one line that begins so."""
        (found,) = (line for line in self.out.splitlines() if line.startswith(f"{sign} {title}: "))
        return found


def doctor(bed: Bed, *flags: str) -> Report:
    """As an administrator runs it."""
    command = [CASABA, "doctor", f"--kubeconfig={bed.kubeconfig}", *flags]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "200"}
    )
    assert done.stderr == ""
    return Report(done.returncode, done.stdout)


def doctor_of_agent(bed: Bed, node: str) -> Report:
    """In the agent's pod of a node."""
    (name,) = pods(bed, "node-agent", node)
    command = ("exec", f"--namespace={NAMESPACE}", name, "--", "casaba", "doctor", "--node")
    done = bed.kubectl(*command, "--json", check=False)
    return Report(json.loads(done.stdout)["exit_code"], done.stdout)


def doctor_on_host(node: Node, *flags: str) -> Report:
    """On the node itself."""
    path = f"PATH={node.programs.folder('containerd')}:{os.environ['PATH']}"
    config = f"--containerd-config={node.folder / 'etc/containerd.toml'}"
    command = ["/usr/bin/env", path, CASABA, "doctor", "--node", "--json", config, *flags]
    done = node.run_in_namespaces(command, check=False)
    return Report(done.returncode, done.stdout)


def pods(bed: Bed, component: str, node: str | None = None) -> list[str]:
    """Names of the living pods of a part of casaba."""
    selector = f"--selector=app.kubernetes.io/component={component}"
    said = bed.kubectl("get", "pods", f"--namespace={NAMESPACE}", selector, "-o=json").stdout
    return [
        item["metadata"]["name"]
        for item in json.loads(said)["items"]
        if "deletionTimestamp" not in item["metadata"]
        and node in (None, item["spec"].get("nodeName"))
    ]


def replace_pods(bed: Bed, component: str) -> None:
    """End the pods of a part; its owner makes others."""
    selector = f"--selector=app.kubernetes.io/component={component}"
    bed.kubectl("delete", "pods", f"--namespace={NAMESPACE}", selector)


def told_by_agent(bed: Bed, node: str, reason: str) -> Report:
    """What the doctor says in the agent's pod, once the agent tells of this problem."""
    reports: list[Report] = []

    def is_told() -> bool:
        reports.append(doctor_of_agent(bed, node))
        return reason in reports[-1].findings["node.agent"]["seen"]

    wait_until(f"the agent of {node} tells {reason}", is_told, POD_TIMEOUT_S)
    return reports[-1]


def backdate(bed: Bed, node: str, manager: str, by: timedelta) -> None:
    """As if a manager had written its fields so much earlier; somebody else writes now."""
    said = bed.kubectl("get", "node", node, "-o=json", "--show-managed-fields").stdout
    entries = json.loads(said)["metadata"]["managedFields"]
    for entry in entries:
        if entry["manager"] == manager:
            entry["time"] = f"{datetime.now(UTC) - by:%Y-%m-%dT%H:%M:%SZ}"
    metadata = {"annotations": {"touched": "yes"}, "managedFields": entries}
    patch = ("--type=merge", f"-p={json.dumps({'metadata': metadata})}")
    bed.kubectl("patch", "node", node, "--field-manager=other", *patch)
