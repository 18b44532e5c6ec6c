"""Shares of a card's time on the real cluster, by the card's own account."""

from __future__ import annotations

import pytest

from casaba.model.ids import GpuUuid
from casaba.wire.schedule_file import is_schedule
from tests.cluster.bed import Bed
from tests.cluster.waiting import wait_until
from tests.e2e.workloads import (
    SCENARIO,
    SCENARIO_GPU,
    applied,
    busy_shares,
    claim,
    container,
    kill_tenant,
    pod,
    run_in,
    wait_for_pod,
    wait_for_slice,
)

MEASURE_S = 8.0
SETTLE_S = 2.0
SCHEDULE_TIMEOUT_S = 10.0


def busy(name: str, *options: str) -> dict[str, object]:
    """A container that keeps the card busy."""
    made = container("c", name)
    made["command"] = ["busy", "--seconds=1000000", *options]
    return made


@pytest.fixture(autouse=True)
def cards_are_offered(bed: Bed) -> None:
    """Every test here starts with both cards on the market."""
    for node in ("edge-1", "edge-2"):
        wait_for_slice(bed, node)


def node_of(bed: Bed, name: str) -> str:
    """Where a pod runs."""
    return bed.kubectl("get", "pod", name, "-o", "jsonpath={.spec.nodeName}").stdout


def test_the_documents_pod_gets_half_and_one_beside_it_a_quarter(bed: Bed) -> None:
    with applied(bed, SCENARIO / "claim.yaml", SCENARIO / "pod-native.yaml"):
        wait_for_pod(bed, "gpu-test-dra")
        node = node_of(bed, "gpu-test-dra")
        quarter = (
            claim("quarter", ("gpu", "4Gi", 25)),
            pod("quarter", ["quarter"], [busy("quarter", "--kernels=1ms")], node=node),
        )
        with applied(bed, *quarter):
            wait_for_pod(bed, "quarter")
            busy_shares(bed, node, [], SETTLE_S)
            shares = busy_shares(bed, node, ["gpu-test-dra", "quarter"], MEASURE_S)
    assert 40 <= shares["gpu-test-dra"] <= 60
    assert 15 <= shares["quarter"] <= 35


def test_graphs_are_held_like_the_rest(bed: Bed) -> None:
    objects = (
        claim("graphs", ("gpu", "1Gi", 30)),
        pod("graphs", ["graphs"], [busy("graphs", "--mode=graph", "--kernels=200us")]),
    )
    with applied(bed, *objects):
        wait_for_pod(bed, "graphs")
        busy_shares(bed, "edge-1", [], SETTLE_S)
        shares = busy_shares(bed, "edge-1", ["graphs"], MEASURE_S)
    assert 20 <= shares["graphs"] <= 40


def test_a_killed_tenant_does_not_stall_the_other(bed: Bed) -> None:
    objects = [
        part
        for name in ("one", "two")
        for part in (
            claim(name, ("gpu", "1Gi", 45)),
            pod(name, [name], [busy(name, "--kernels=1ms")]),
        )
    ]
    with applied(bed, *objects):
        for name in ("one", "two"):
            wait_for_pod(bed, name)
        busy_shares(bed, "edge-1", [], SETTLE_S)
        kill_tenant(bed, "edge-1", "one")
        shares = busy_shares(bed, "edge-1", ["two"], MEASURE_S)
    assert 35 <= shares["two"] <= 55


def test_a_tenant_that_spoils_the_schedule_harms_nobody_for_long(bed: Bed) -> None:
    objects = [
        part
        for name in ("fair", "foul")
        for part in (
            claim(name, ("gpu", "1Gi", 40)),
            pod(name, [name], [busy(name, "--kernels=1ms")]),
        )
    ]
    with applied(bed, *objects):
        for name in ("fair", "foul"):
            wait_for_pod(bed, name)
        run_in(bed, "foul", "sh", "-c", "echo garbage > $(echo /run/casaba/gpus/GPU-*)")
        schedule = bed.node("edge-1").path(f"/run/casaba/gpus/{SCENARIO_GPU}")
        wait_until(
            "the agent has made the schedule whole",
            lambda: is_schedule(schedule.read_bytes(), GpuUuid(SCENARIO_GPU)),
            SCHEDULE_TIMEOUT_S,
        )
        busy_shares(bed, "edge-1", [], SETTLE_S)
        shares = busy_shares(bed, "edge-1", ["fair", "foul"], MEASURE_S)
    assert 30 <= shares["fair"] <= 50
    assert 30 <= shares["foul"] <= 50
