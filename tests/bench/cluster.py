"""Shares of a card's time between the documents' pod and one beside it, on the real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.bench.figures import Figure
from tests.cluster.bed import Bed, gpu_node, up
from tests.cluster.settings import BedSettings, default_state
from tests.e2e.workloads import (
    SCENARIO,
    applied,
    busy_shares,
    claim,
    container,
    pod,
    wait_for_pod,
    wait_for_slice,
)

_NAME = "casababench"
_NODE = "bench-1"
_SETTLE_S = 3.0
_MEASURE_S = 30.0
_BOUND_POINTS = 2.0
_ASKED = {"gpu-test-dra": 50.0, "quarter": 25.0}


def measure() -> Iterator[Figure]:
    """The worst error of a pod of 50 and one of 25 percent, over 30 s: in the card's own account,
    and in NVML as each tenant sees it."""
    settings = BedSettings(
        name=_NAME, state=default_state(_NAME), nodes=(gpu_node(1, _NODE),), agent=True
    )
    bed = up(settings)
    try:
        wait_for_slice(bed, _NODE)
        yield _share_error(bed)
    finally:
        bed.down()


def _share_error(bed: Bed) -> Figure:
    busy = container("c", "quarter") | {"command": ["busy", "--seconds=100000", "--kernels=1ms"]}
    quarter = (claim("quarter", ("gpu", "4Gi", 25)), pod("quarter", ["quarter"], [busy], _NODE))
    with applied(bed, SCENARIO / "claim.yaml", SCENARIO / "pod-native.yaml", *quarter):
        for name in _ASKED:
            wait_for_pod(bed, name)
        busy_shares(bed, _NODE, [], _SETTLE_S)
        with ThreadPoolExecutor(len(_ASKED)) as pool:
            seen = {name: pool.submit(_seen_share, bed, name) for name in _ASKED}
            shares = busy_shares(bed, _NODE, list(_ASKED), _MEASURE_S)
            found = [(shares[name], seen[name].result()) for name in _ASKED]
    errors = [
        abs(v - asked) for pair, asked in zip(found, _ASKED.values(), strict=True) for v in pair
    ]
    return Figure(name="cluster_share_error", value=max(errors), unit="points", bound=_BOUND_POINTS)


def _seen_share(bed: Bed, name: str) -> float:
    """The mean that NVML tells inside the pod of its own processes."""
    command = ("exec", name, "--", "utilization", f"--seconds={_MEASURE_S}")
    said = bed.kubectl(*command, timeout_s=_MEASURE_S + 30).stdout
    return float(said.split()[1])
