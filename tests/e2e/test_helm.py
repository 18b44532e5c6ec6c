"""The chart's life on the real cluster: real helm, and images built from images/*.

The tests are in the order of a release's life; the last one ends it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.cluster.bed import Bed
from tests.cluster.traces import Traces, traces
from tests.e2e.charts import CHART, RELEASE
from tests.e2e.releases import (
    GONE_TIMEOUT_S,
    NAMESPACE,
    PLACE,
    WAITING,
    granted,
    install,
    of_pod,
    remove_rest,
    uninstall,
    wait_for_cards,
    wait_for_event,
    wait_for_no_difference,
)
from tests.e2e.workloads import (
    SCENARIO,
    applied,
    busy_shares,
    classic_pod,
    is_running,
    memory_mib,
    status,
    wait_for_pod,
)

pytestmark = pytest.mark.timeout(400)

NODES = ("edge-1", "edge-2")
VALUES = ("--set=drivers.nvidia.containerDriver=true",)
MEASURE_S = 8.0
SETTLE_S = 2.0
NEIGHBOURS = 20
SMALL = {"gpu": "1", "gpumem": "256", "gpucores": "5"}


@dataclass(frozen=True)
class Installed:
    """A bed with the chart, and what there was before it."""

    bed: Bed
    before: Traces


@pytest.fixture(scope="module")
def installed(bare_bed: Bed) -> Iterator[Installed]:
    """The chart, installed while the second node has no driver yet."""
    late = bare_bed.node("edge-2")
    make_namespace(bare_bed)
    try:
        before = traces(bare_bed)
        late.remove_driver()
        try:
            install(bare_bed, *VALUES)
            wait_for_cards(bare_bed, "edge-1", 1)
            wait_for_event(bare_bed, "edge-2", "DriverMissing")
        finally:
            late.bring_driver()
        yield Installed(bare_bed, before)
    finally:
        remove_rest(bare_bed)


def make_namespace(bed: Bed) -> None:
    """As Helm does where there is none; it never removes it."""
    labelled = {"name": NAMESPACE, "labels": {"name": NAMESPACE}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": labelled}
    bed.kubectl("create", "-f", "-", stdin=json.dumps(namespace))


@pytest.fixture
def chart(installed: Installed) -> Bed:
    """The bed with the chart."""
    return installed.bed


def test_a_driver_that_comes_late_is_found(chart: Bed) -> None:
    for node in NODES:
        wait_for_cards(chart, node, 1)


def test_the_documents_classic_pod_word_for_word(chart: Bed) -> None:
    with applied(chart, SCENARIO / "pod-compatible.yaml"):
        wait_for_pod(chart, "gpu-test-compatible")
        assert granted(chart, "gpu-test-compatible") == [{"cores": "50", "memory": "10Gi"}]
        assert memory_mib(chart, "gpu-test-compatible") == 10240
        node = of_pod(chart, "gpu-test-compatible")["spec"]["nodeName"]
        busy_shares(chart, node, [], SETTLE_S)
        shares = busy_shares(chart, node, ["gpu-test-compatible"], MEASURE_S)
        assert 40 <= shares["gpu-test-compatible"] <= 60


def test_a_second_release_is_refused_with_one_sentence(chart: Bed) -> None:
    done = chart.helm("install", "other", str(CHART), "--namespace=default", *VALUES, check=False)
    assert done.returncode != 0
    assert (
        f"this cluster already has the release {RELEASE} in namespace {NAMESPACE}, and driver name,"
        " class and sockets exist once per cluster" in done.stderr
    )


def test_pods_start_and_run_on_while_the_release_is_upgraded(chart: Bed) -> None:
    for node in NODES:
        wait_for_cards(chart, node, 1)
    names = [f"neighbour-{number}" for number in range(NEIGHBOURS)]
    with applied(chart, *(classic_pod(name, **SMALL) for name in names)):
        for name in names:
            wait_for_pod(chart, name)
        before = {name: containers(chart, name) for name in names}
        release = pods_of_the_release(chart)
        started_meanwhile = starts_during_an_upgrade(chart)
        assert not release & pods_of_the_release(chart)
        assert {name: containers(chart, name) for name in names} == before
    assert started_meanwhile > 0
    failed = "--field-selector=reason=FailedPrepareDynamicResources"
    assert chart.kubectl("get", "events", failed, "-o", "name").stdout == ""


def pods_of_the_release(bed: Bed) -> set[str]:
    """Those that are not on their way out."""
    listed = json.loads(bed.kubectl("get", "pods", PLACE, "-o=json").stdout)
    pods = [item["metadata"] for item in listed["items"]]
    return {pod["uid"] for pod in pods if "deletionTimestamp" not in pod}


def starts_during_an_upgrade(bed: Bed) -> int:
    """How many pods could be started, one after the other, while helm replaced everything."""
    levels = [
        f"--set={part}.logLevel=debug" for part in ("webhook", "controller", "drivers.nvidia")
    ]
    started = 0
    with ThreadPoolExecutor(1) as pool:
        upgrade = pool.submit(
            bed.helm, "upgrade", RELEASE, str(CHART), PLACE, *VALUES, *levels, *WAITING
        )
        while not upgrade.done():
            name = f"meanwhile-{started}"
            with applied(bed, classic_pod(name, **SMALL)):
                wait_for_pod(bed, name)
            started += 1
        upgrade.result()
    return started


def containers(bed: Bed, pod: str) -> list[tuple[str, int]]:
    """Which containers a pod has, and how often they were started again."""
    told = status(bed, pod)["containerStatuses"]
    return [(entry["containerID"], entry["restartCount"]) for entry in told]


def test_helm_test_asks_the_doctor(chart: Bed) -> None:
    for node in NODES:
        wait_for_cards(chart, node, 1)
    done = chart.helm("test", RELEASE, PLACE)
    assert "a classic pod on trial" in done.stderr
    assert "✘" not in done.stderr


def test_an_uninstall_is_refused_while_pods_hold_cards(chart: Bed) -> None:
    with applied(chart, classic_pod("holder", **SMALL)):
        wait_for_pod(chart, "holder")
        release = pods_of_the_release(chart)
        done = uninstall(chart, check=False)
        assert done.returncode != 0
        assert "1 pod holds cards: default/holder" in done.stderr
        assert "delete these pods" in done.stderr
        assert is_running(chart, "holder")
        assert pods_of_the_release(chart) == release


def test_an_uninstall_leaves_nothing(installed: Installed) -> None:
    bed = installed.bed
    done = uninstall(bed)
    assert "every node is clean" in done.stderr
    wait_for_no_difference(
        "an uninstall leaves nothing",
        lambda: installed.before.difference(traces(bed)),
        GONE_TIMEOUT_S,
    )
