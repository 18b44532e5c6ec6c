"""The chart on the real cluster: real helm, and images built from images/*."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.bed import Bed
from tests.cluster.images import SAMPLE
from tests.cluster.waiting import wait_until
from tests.e2e.workloads import (
    SCENARIO,
    SLICE_TIMEOUT_S,
    applied,
    busy_shares,
    memory_mib,
    slices,
    status,
    wait_for_pod,
)

pytestmark = pytest.mark.timeout(400)

CHART = Path(__file__).parents[2] / "charts" / "casaba"
RELEASE, NAMESPACE = "casaba", "hami-system"
NODES = ("edge-1", "edge-2")
WAITING = ("--wait", "--timeout=180s")
VALUES = ("--set=drivers.nvidia.containerDriver=true",)
MEASURE_S = 8.0
SETTLE_S = 2.0
NEIGHBOURS = 20


@pytest.fixture(scope="module")
def chart(bare_bed: Bed) -> Iterator[Bed]:
    """The chart, installed while the second node has no driver yet."""
    late = bare_bed.node("edge-2")
    late.remove_driver()
    try:
        bare_bed.helm("install", RELEASE, str(CHART), *placed(), *VALUES, *WAITING)
        wait_for_cards(bare_bed, "edge-1", 1)
        wait_for_event(bare_bed, "edge-2", "DriverMissing")
    finally:
        late.bring_driver()
    yield bare_bed
    bare_bed.helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--no-hooks", *WAITING)


def placed() -> tuple[str, str]:
    """Where the release goes."""
    return f"--namespace={NAMESPACE}", "--create-namespace"


def wait_for_cards(bed: Bed, node: str, count: int) -> None:
    """Until a node offers so many cards; tells what its agent says if it does not."""
    agents = ("--namespace", NAMESPACE, "logs", "--selector=app.kubernetes.io/component=node-agent")
    wait_until(
        f"{node} offers {count} cards",
        lambda: sum(len(item["spec"].get("devices", [])) for item in slices(bed, node)) == count,
        SLICE_TIMEOUT_S,
        explain=lambda: bed.kubectl(*agents, "--prefix", check=False).stdout,
    )


def wait_for_event(bed: Bed, node: str, reason: str) -> None:
    """Until people can read on a Node why something is as it is."""
    selector = f"--field-selector=reason={reason},involvedObject.name={node}"
    wait_until(
        f"an event {reason} on {node}",
        lambda: bool(bed.kubectl("get", "events", selector, "-o", "name").stdout),
        SLICE_TIMEOUT_S,
    )


def classic_pod(name: str, **resources: str) -> dict[str, Any]:
    """A pod that waits, with resources of `nvidia.com`."""
    limits = {f"nvidia.com/{kind}": amount for kind, amount in resources.items()}
    waiting = {
        "name": "c",
        "image": SAMPLE,
        "command": ["sleep", "1000000"],
        "resources": {"limits": limits},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [waiting]},
    }


def of_pod(bed: Bed, name: str) -> dict[str, Any]:
    return dict(json.loads(bed.kubectl("get", "pod", name, "-o", "json").stdout))


def granted(bed: Bed, pod: str) -> list[dict[str, str]]:
    """What the claims made for a pod have of their cards."""
    made = of_pod(bed, pod)["status"]["resourceClaimStatuses"]
    names = [entry["resourceClaimName"] for entry in made]
    found = (
        json.loads(bed.kubectl("get", "resourceclaim", name, "-o", "json").stdout) for name in names
    )
    return [
        result["consumedCapacity"]
        for claim in found
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]


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
    small = {"gpu": "1", "gpumem": "256", "gpucores": "5"}
    with applied(chart, *(classic_pod(name, **small) for name in names)):
        for name in names:
            wait_for_pod(chart, name)
        before = {name: containers(chart, name) for name in names}
        release = pods_of_the_release(chart)
        started_meanwhile = starts_during_an_upgrade(chart, small)
        assert not release & pods_of_the_release(chart)
        assert {name: containers(chart, name) for name in names} == before
    assert started_meanwhile > 0
    failed = "--field-selector=reason=FailedPrepareDynamicResources"
    assert chart.kubectl("get", "events", failed, "-o", "name").stdout == ""


def pods_of_the_release(bed: Bed) -> set[str]:
    """Those that are not on their way out."""
    listed = json.loads(bed.kubectl("get", "pods", f"--namespace={NAMESPACE}", "-o=json").stdout)
    pods = [item["metadata"] for item in listed["items"]]
    return {pod["uid"] for pod in pods if "deletionTimestamp" not in pod}


def starts_during_an_upgrade(bed: Bed, resources: dict[str, str]) -> int:
    """How many pods could be started, one after the other, while helm replaced everything."""
    levels = [
        f"--set={part}.logLevel=debug" for part in ("webhook", "controller", "drivers.nvidia")
    ]
    started = 0
    with ThreadPoolExecutor(1) as pool:
        upgrade = pool.submit(
            bed.helm, "upgrade", RELEASE, str(CHART), *placed(), *VALUES, *levels, *WAITING
        )
        while not upgrade.done():
            name = f"meanwhile-{started}"
            with applied(bed, classic_pod(name, **resources)):
                wait_for_pod(bed, name)
            started += 1
        upgrade.result()
    return started


def containers(bed: Bed, pod: str) -> list[tuple[str, int]]:
    """Which containers a pod has, and how often they were started again."""
    told = status(bed, pod)["containerStatuses"]
    return [(entry["containerID"], entry["restartCount"]) for entry in told]
