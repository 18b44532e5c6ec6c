"""What goes wrong is told where a person looks: exit code and one line, or the pod's events."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.agent import agent_command
from tests.cluster.bed import Bed
from tests.cluster.waiting import wait_until
from tests.e2e.workloads import (
    DRIVER,
    POD_TIMEOUT_S,
    applied,
    claim,
    container,
    pod,
    wait_for_slice,
)


@pytest.mark.parametrize(
    ("flag", "code", "text"),
    [
        ("--nvidia-ctk=/nonexistent", 3, "no nvidia-ctk at /nonexistent: install the NVIDIA"),
        ("--kubeconfig=/nonexistent", 2, "/nonexistent"),
        ("--kubeconfig=/etc/hostname", 2, "/etc/hostname"),
        ("--node-name=nobody", 2, "the cluster has no node 'nobody'"),
        ("--boot-id-path=/nonexistent", 3, "can't read /nonexistent: No such file"),
        (f"--kubelet-dir=/var/lib/{'x' * 80}", 2, "a unix socket takes 107"),
        ("--context-size=much", 2, "'much' is not a quantity"),
    ],
)
def test_an_agent_that_can_not_start_says_why(bed: Bed, flag: str, code: int, text: str) -> None:
    node = bed.node("edge-2")
    command = agent_command(bed.settings, node.settings, bed.programs)
    done = node.run_in_namespaces([*command, flag], check=False)
    told = [line for line in done.stderr.splitlines() if line.startswith("casaba node-agent: ")]
    assert (done.returncode, len(told)) == (code, 1), done.stderr
    assert text in told[0]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"device": "hami-gpu-9"}, "device 'hami-gpu-9' is not on node edge-1"),
        ({"consumedCapacity": {"cores": "1"}}, "says nothing of 'memory' in consumedCapacity"),
    ],
)
def test_a_claim_that_can_not_be_prepared_says_why_in_the_pods_events(
    bed: Bed, result: dict[str, object], text: str
) -> None:
    wait_for_slice(bed, "edge-1")
    with allocated_by_hand(bed, claim("odd", ("gpu", "1Gi", 1)), result) as uid:
        with applied(bed, pod("odd", ["odd"], [container("c", "odd")])):
            wait_until(
                "the pod's events tell",
                lambda: text in bed.kubectl("describe", "pod", "odd").stdout,
                POD_TIMEOUT_S,
                explain=lambda: bed.kubectl("describe", "pod", "odd").stdout,
            )
            node = bed.node("edge-1")
            assert not node.path(f"/run/casaba/claims/{uid}").exists()
            assert not node.path(f"/var/run/cdi/casaba.dev-claim_{uid}.json").exists()


@contextlib.contextmanager
def allocated_by_hand(bed: Bed, claim: dict[str, Any], changes: dict[str, object]) -> Iterator[str]:
    """A claim as a scheduler that has gone wrong would leave it; gives its UID."""
    name = claim["metadata"]["name"]
    bed.kubectl("create", "-f", "-", stdin=json.dumps(claim))
    try:
        _allocate(bed, name, changes)
        yield bed.kubectl("get", "resourceclaim", name, "-o=jsonpath={.metadata.uid}").stdout
    finally:
        bed.kubectl("delete", "resourceclaim", name)


def _allocate(bed: Bed, name: str, changes: dict[str, object]) -> None:
    result = {
        "request": "gpu",
        "driver": DRIVER,
        "pool": "edge-1",
        "device": "hami-gpu-0",
        "shareID": str(uuid.uuid4()),
        "consumedCapacity": {"cores": "1", "memory": "1Gi"},
    }
    allocation = {
        "devices": {"results": [result | changes]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",  # else the scheduler adds one, in vain
    }
    status = {"allocation": allocation}
    patch = json.dumps({"status": status})
    bed.kubectl(
        "patch", "resourceclaim", name, "--subresource=status", "--type=merge", f"-p={patch}"
    )
