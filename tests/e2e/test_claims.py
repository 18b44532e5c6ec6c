"""Claims and pods of users on the real cluster: the documents' own, and their variations."""

from __future__ import annotations

import json

import pytest

from tests.cluster.bed import Bed
from tests.cluster.waiting import wait_until
from tests.e2e.workloads import (
    DRIVER,
    POD_TIMEOUT_S,
    SCENARIO,
    allocatable_mib,
    applied,
    claim,
    container,
    holding,
    memory_mib,
    pod,
    run_in,
    status,
    wait_for_pod,
    wait_for_slice,
)

ANNOUNCEMENT = "Initializing....."


@pytest.fixture(autouse=True)
def cards_are_offered(bed: Bed) -> None:
    """Every test here starts with both cards on the market."""
    for node in ("edge-1", "edge-2"):
        wait_for_slice(bed, node)


def test_the_published_slice_is_the_documents(bed: Bed) -> None:
    wanted = json.loads((SCENARIO / "resourceslice.json").read_text())["spec"]
    wanted["nodeName"] = wanted["pool"]["name"] = "edge-1"
    listed = json.loads(bed.kubectl("get", "resourceslices", "-o", "json").stdout)["items"]
    slices = [item for item in listed if item["spec"].get("nodeName") == "edge-1"]
    assert [item["spec"]["pool"].pop("generation") > 0 for item in slices] == [True]
    wanted["pool"].pop("generation")
    assert [item["spec"] for item in slices] == [wanted]
    (owner,) = slices[0]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Node", "edge-1", True)


def test_a_node_without_the_label_offers_nothing(bed: Bed) -> None:
    listed = json.loads(bed.kubectl("get", "resourceslices", "-o", "json").stdout)["items"]
    assert {item["spec"]["nodeName"] for item in listed} == {"edge-1", "edge-2"}
    wait_until(
        "the agent of edge-3 refuses",
        lambda: (
            "no label gpu=on: nothing is published" in bed.node("edge-3").log("agent").read_text()
        ),
        POD_TIMEOUT_S,
    )
    assert bed.node("edge-3").pid("agent") is None


def test_the_documents_claim_and_pod_word_for_word(bed: Bed) -> None:
    with applied(bed, SCENARIO / "claim.yaml", SCENARIO / "pod-native.yaml"):
        wait_for_pod(bed, "gpu-test-dra")
        logs = bed.kubectl("logs", "gpu-test-dra").stdout
        assert "0MiB / 10240MiB" in logs
        assert ANNOUNCEMENT in logs
        assert "MiB / 10240MiB" in run_in(bed, "gpu-test-dra", "nvidia-smi")
        found = json.loads(
            bed.kubectl("get", "resourceclaim", "gpu-half-claim", "-o", "json").stdout
        )
        (result,) = found["status"]["allocation"]["devices"]["results"]
        assert result["consumedCapacity"] == {"cores": "50", "memory": "10Gi"}


def test_ten_gib_can_be_had_and_not_a_byte_more(bed: Bed) -> None:
    objects = (claim("ten", ("gpu", "10Gi", 50)), pod("ten", ["ten"], [container("c", "ten")]))
    with applied(bed, *objects):
        wait_for_pod(bed, "ten")
        assert memory_mib(bed, "ten") == 10240
        assert allocatable_mib(bed, "ten") == 10240
        assert allocatable_mib(bed, "ten") == 10240  # the first process gave all of it back


def test_pools_are_no_way_around_the_limit(bed: Bed) -> None:
    objects = (claim("pool", ("gpu", "2Gi", 50)), pod("pool", ["pool"], [container("c", "pool")]))
    with applied(bed, *objects):
        wait_for_pod(bed, "pool")
        assert allocatable_mib(bed, "pool", program="pool_until_refused") == 2 * 1024


def test_two_claims_in_one_container_add_up(bed: Bed) -> None:
    objects = (
        claim("first", ("gpu", "3Gi", 20)),
        claim("second", ("gpu", "4Gi", 20)),
        pod("both", ["first", "second"], [container("c", "first", "second")]),
    )
    with applied(bed, *objects):
        wait_for_pod(bed, "both")
        assert memory_mib(bed, "both") == 7 * 1024
        assert allocatable_mib(bed, "both") == 7 * 1024


def test_two_requests_of_one_claim_taken_whole_add_up(bed: Bed) -> None:
    objects = (
        claim("pair", ("a", "2Gi", 10), ("b", "3Gi", 10)),
        pod("whole", ["pair"], [container("c", "pair")]),
    )
    with applied(bed, *objects):
        wait_for_pod(bed, "whole")
        assert allocatable_mib(bed, "whole") == 5 * 1024


def test_two_requests_of_one_claim_taken_by_a_container_each(bed: Bed) -> None:
    objects = (
        claim("pair", ("a", "2Gi", 10), ("b", "3Gi", 10)),
        pod("split", ["pair"], [container("one", "pair/a"), container("two", "pair/b")]),
    )
    with applied(bed, *objects):
        wait_for_pod(bed, "split")
        assert allocatable_mib(bed, "split", "one") == 2 * 1024
        assert allocatable_mib(bed, "split", "two") == 3 * 1024


def test_two_containers_that_use_one_claim_share_its_limit(bed: Bed) -> None:
    objects = (
        claim("shared", ("gpu", "4Gi", 10)),
        pod("twins", ["shared"], [container("one", "shared"), container("two", "shared")]),
    )
    with applied(bed, *objects):
        wait_for_pod(bed, "twins")
        assert memory_mib(bed, "twins", "two") == 4 * 1024
        with holding(bed, "twins", 3 * 1024, "one"):
            assert allocatable_mib(bed, "twins", "two") == 1024
        assert allocatable_mib(bed, "twins", "two") == 4 * 1024


def test_a_second_pod_shares_the_card_and_one_that_does_not_fit_waits(bed: Bed) -> None:
    first = (claim("big", ("gpu", "14Gi", 40)), pod("big", ["big"], [container("c", "big")]))
    second = (claim("rest", ("gpu", "8Gi", 40)), pod("rest", ["rest"], [container("c", "rest")]))
    third = (claim("more", ("gpu", "1Gi", 10)), pod("more", ["more"], [container("c", "more")]))
    with applied(bed, *first, *second):
        wait_for_pod(bed, "big")
        wait_for_pod(bed, "rest")
        assert (memory_mib(bed, "big"), memory_mib(bed, "rest")) == (14 * 1024, 8 * 1024)
        with applied(bed, *third):
            wait_until(
                "the scheduler says why the third does not fit",
                lambda: "cannot allocate all claims" in json.dumps(status(bed, "more")),
                POD_TIMEOUT_S,
            )
            assert status(bed, "more")["phase"] == "Pending"
            bed.kubectl("delete", "pod", "rest", "--wait=true")
            wait_for_pod(bed, "more")


def test_a_tenant_that_is_not_root_is_held_too(bed: Bed) -> None:
    unprivileged = container("c", "one")
    unprivileged["securityContext"] = {
        "runAsUser": 65534,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    objects = (claim("one", ("gpu", "1Gi", 10)), pod("nobody", ["one"], [unprivileged]))
    with applied(bed, *objects):
        wait_for_pod(bed, "nobody")
        assert allocatable_mib(bed, "nobody") == 1024


def test_a_tenant_can_not_write_its_limits(bed: Bed) -> None:
    objects = (claim("one", ("gpu", "1Gi", 10)), pod("writer", ["one"], [container("c", "one")]))
    with applied(bed, *objects):
        wait_for_pod(bed, "writer")
        attack = "for f in /run/casaba/claims/*/*/policy /etc/ld.so.preload; do echo x >> $f; done"
        said = bed.kubectl("exec", "writer", "--", "sh", "-c", attack, check=False)
        assert said.returncode != 0
        assert "Read-only file system" in said.stderr
        stripped = ("env", "-i", "PATH=/usr/local/bin:/usr/bin", "CASABA_RUN_DIR=/tmp")
        assert "1024" in run_in(bed, "writer", *stripped, "nvidia-smi")


def test_deleted_pods_leave_nothing_on_the_node(bed: Bed) -> None:
    objects = (claim("gone", ("gpu", "1Gi", 10)), pod("gone", ["gone"], [container("c", "gone")]))
    node = bed.node("edge-1")
    with applied(bed, *objects):
        wait_for_pod(bed, "gone")
        found = json.loads(bed.kubectl("get", "resourceclaim", "gone", "-o", "json").stdout)
        uid = found["metadata"]["uid"]
        folders = [
            node.path(f"/run/casaba/claims/{uid}"),
            node.path(f"/var/run/cdi/casaba.dev-claim_{uid}.json"),
            node.path(f"/var/lib/kubelet/plugins/{DRIVER}/claims/{uid}.json"),
        ]
        assert all(path.exists() for path in folders)
    assert [path for path in folders if path.exists()] == []
