"""Agents and nodes that stop and start, under the pods of users."""

from __future__ import annotations

import json

from tests.cluster.bed import Bed
from tests.cluster.waiting import wait_until
from tests.e2e.workloads import (
    DRIVER,
    SCENARIO,
    SLICE_TIMEOUT_S,
    allocatable_mib,
    applied,
    claim,
    container,
    memory_mib,
    pod,
    run_in,
    slices,
    status,
    wait_for_pod,
    wait_for_slice,
)

REBOOT_TIMEOUT_S = 180.0
"""Until the node is Ready, its pods are known again, and a first failed prepare was retried."""


def test_a_deleted_slice_comes_back(bed: Bed) -> None:
    wait_for_slice(bed, "edge-1")
    before = slices(bed, "edge-1")[0]["metadata"]["uid"]
    bed.kubectl("delete", "resourceslices", "--field-selector=spec.nodeName=edge-1")
    wait_for_slice(bed, "edge-1")
    assert slices(bed, "edge-1")[0]["metadata"]["uid"] != before


def test_an_edited_slice_is_put_right(bed: Bed) -> None:
    wait_for_slice(bed, "edge-1")
    found = slices(bed, "edge-1")[0]
    patch = [{"op": "replace", "path": "/spec/devices/0/attributes/brand/string", "value": "x"}]
    name = found["metadata"]["name"]
    bed.kubectl("patch", "resourceslice", name, "--type=json", f"-p={json.dumps(patch)}")
    wait_until(
        "the brand is right again",
        lambda: [item["spec"] for item in slices(bed, "edge-1")] == [found["spec"]],
        SLICE_TIMEOUT_S,
    )


def test_pods_do_not_notice_that_their_agent_is_killed(bed: Bed) -> None:
    objects = (claim("life", ("gpu", "2Gi", 10)), pod("life", ["life"], [container("c", "life")]))
    node = bed.node("edge-1")
    with applied(bed, *objects):
        wait_for_pod(bed, "life")
        before = status(bed, "life")["containerStatuses"]
        node.kill("agent")
        assert allocatable_mib(bed, "life") == 2 * 1024
        node.start("agent")
        bed.kubectl("delete", "resourceslices", "--field-selector=spec.nodeName=edge-1")
        wait_for_slice(bed, "edge-1")
        assert status(bed, "life")["containerStatuses"] == before
        assert allocatable_mib(bed, "life") == 2 * 1024


def test_a_restarted_kubelet_finds_the_driver_again(bed: Bed) -> None:
    node = bed.node("edge-2")
    node.restart("kubelet")
    wait_for_slice(bed, "edge-2")
    objects = (
        claim("again", ("gpu", "2Gi", 10)),
        pod("again", ["again"], [container("c", "again")], node="edge-2"),
    )
    with applied(bed, *objects):
        wait_for_pod(bed, "again")
        assert memory_mib(bed, "again") == 2 * 1024


def restarts(bed: Bed, name: str) -> int:
    """How often a pod's first container was started again."""
    told = status(bed, name).get("containerStatuses", [])
    return int(told[0]["restartCount"]) if told and told[0]["ready"] else -1


def test_a_rebooted_node_brings_its_gpu_pods_back(bed: Bed) -> None:
    objects = (
        claim("always", ("gpu", "2Gi", 10)),
        pod("always", ["always"], [container("c", "always")]),
        SCENARIO / "claim.yaml",
        SCENARIO / "pod-native.yaml",
    )
    node = bed.node("edge-1")
    with applied(bed, *objects):
        wait_for_pod(bed, "always")
        wait_for_pod(bed, "gpu-test-dra")
        scenario_node = bed.node(_node_of(bed, "gpu-test-dra"))
        uid = _claim_uid(bed, "gpu-half-claim")
        for rebooted in {node.name: node, scenario_node.name: scenario_node}.values():
            rebooted.reboot()
        wait_until(
            "the pod with restartPolicy Always runs again",
            lambda: restarts(bed, "always") > 0,
            REBOOT_TIMEOUT_S,
            explain=lambda: bed.kubectl("describe", "pod", "always").stdout,
        )
        assert allocatable_mib(bed, "always") == 2 * 1024
        assert "2048MiB" in run_in(bed, "always", "nvidia-smi")
        wait_until(
            "the documents' pod has failed",
            lambda: status(bed, "gpu-test-dra").get("phase") == "Failed",
            REBOOT_TIMEOUT_S,
            explain=lambda: bed.kubectl("describe", "pod", "gpu-test-dra").stdout,
        )
        left = [
            scenario_node.path(f"/run/casaba/claims/{uid}"),
            scenario_node.path(f"/var/run/cdi/casaba.dev-claim_{uid}.json"),
            scenario_node.path(f"/var/lib/kubelet/plugins/{DRIVER}/claims/{uid}.json"),
        ]
        wait_until(
            "nothing of its claim is left on the node",
            lambda: not any(path.exists() for path in left),
            REBOOT_TIMEOUT_S,
            explain=lambda: f"left: {[str(path) for path in left if path.exists()]}",
        )


def _node_of(bed: Bed, name: str) -> str:
    return bed.kubectl("get", "pod", name, "-o", "jsonpath={.spec.nodeName}").stdout


def _claim_uid(bed: Bed, name: str) -> str:
    return bed.kubectl("get", "resourceclaim", name, "-o", "jsonpath={.metadata.uid}").stdout
