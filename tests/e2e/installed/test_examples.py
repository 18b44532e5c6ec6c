"""The examples of examples/workloads, as they are, do what they promise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chart.test_examples import EXAMPLES, WORKLOADS
from tests.cluster.bed import Bed
from tests.cluster.waiting import wait_until
from tests.e2e.installed.objects import Object, read
from tests.e2e.workloads import POD_TIMEOUT_S, run_in, wait_for_pod

pytestmark = pytest.mark.timeout(400)

FOLDER = EXAMPLES / "workloads"
JOB = "job.yaml"
DEPLOYMENTS = {
    "embeddings": ("app=embeddings", 4096),
    "model-predictor": ("app=model-predictor", 3072),
}
"""By what their pods are found, and the memory of each in MiB."""


def test_a_job_without_cores_comes_to_its_end(release: Bed) -> None:
    """By itself: it takes what others leave, and they would leave it little."""
    file = f"--filename={FOLDER / JOB}"
    release.kubectl("apply", file)
    wait_until(
        "the job is done",
        lambda: read(release, "job", "nightly-training")["status"].get("succeeded") == 1,
        POD_TIMEOUT_S,
        explain=lambda: release.kubectl("describe", "job", "nightly-training").stdout,
    )
    said = release.kubectl("logs", "job/nightly-training").stdout
    release.kubectl("delete", file)
    assert "samples/s" in said


@pytest.fixture(scope="module")
def running(release: Bed) -> Iterator[Bed]:
    """All others at once: the bed has room for that."""
    files = [f"--filename={FOLDER / name}" for name in WORKLOADS if name != JOB]
    release.kubectl("apply", *files)
    yield release
    release.kubectl("delete", *files, "--wait=false")


def pods_of(bed: Bed, selector: str) -> list[Object]:
    """Pods by their labels."""
    said = bed.kubectl("get", "pods", f"--selector={selector}", "-o=json").stdout
    return list(json.loads(said)["items"])


def cards(bed: Bed, pod: str) -> list[tuple[str, int]]:
    """UUID and memory in MiB of each card, as nvidia-smi shows them in a pod."""
    query = ("--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits")
    rows = [line.split(", ") for line in run_in(bed, pod, "nvidia-smi", *query).splitlines()]
    return [(uuid, int(mib)) for uuid, mib in rows]


def allocated(bed: Bed, claim: str) -> dict[str, dict[str, str]]:
    """What a claim got for each of its requests."""
    results = read(bed, "resourceclaim", claim)["status"]["allocation"]["devices"]["results"]
    return {result["request"]: result["consumedCapacity"] for result in results}


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_each_replica_has_a_slice_of_its_own(running: Bed, name: str) -> None:
    selector, mib = DEPLOYMENTS[name]
    wait_until(
        f"both replicas of {name} are available",
        lambda: read(running, "deployment", name)["status"].get("availableReplicas") == 2,
        POD_TIMEOUT_S,
        explain=lambda: running.kubectl("describe", "pods", f"--selector={selector}").stdout,
    )
    pods = pods_of(running, selector)
    claims = {entry["resourceClaimName"] for pod in pods for entry in claims_of(pod)}
    assert len(claims) == len(pods) == 2
    for pod in pods:
        ((_, seen_mib),) = cards(running, pod["metadata"]["name"])
        assert seen_mib == mib


def claims_of(pod: Object) -> list[dict[str, Any]]:
    """Which claim stands for each entry of a pod's spec."""
    return list(pod["status"]["resourceClaimStatuses"])


def test_the_init_container_uses_the_servers_slice(running: Bed) -> None:
    for pod in pods_of(running, "app=embeddings"):
        (entry,) = claims_of(pod)
        amounts = {"cores": "25", "memory": "4Gi"}
        assert list(allocated(running, entry["resourceClaimName"]).values()) == [amounts]
        said = running.kubectl("logs", pod["metadata"]["name"], "--container=warm-up").stdout
        assert "4096MiB" in said


def test_one_container_has_two_different_cards(running: Bed) -> None:
    wait_for_pod(running, "two-cards")
    seen = cards(running, "two-cards")
    assert [mib for _, mib in seen] == [8192, 8192]
    assert len({uuid for uuid, _ in seen}) == 2


def test_two_tenants_share_one_card(running: Bed) -> None:
    tenants = ("tenant-large", "tenant-small")
    for name in tenants:
        wait_for_pod(running, name)
    ((one, large_mib),), ((other, small_mib),) = (cards(running, name) for name in tenants)
    assert one == other
    assert (large_mib, small_mib) == (10240, 6144)
    assert allocated(running, "shared-card") == {
        "large": {"cores": "60", "memory": "10Gi"},
        "small": {"cores": "40", "memory": "6Gi"},
    }


def test_a_model_server_has_its_probe_and_its_share(running: Bed) -> None:
    for pod in pods_of(running, "app=model-predictor"):
        (container,) = pod["spec"]["containers"]
        assert container["readinessProbe"]["tcpSocket"] == {"port": "http1"}
        (entry,) = claims_of(pod)
        amounts = {"gpu": {"cores": "20", "memory": "3Gi"}}
        assert allocated(running, entry["resourceClaimName"]) == amounts
