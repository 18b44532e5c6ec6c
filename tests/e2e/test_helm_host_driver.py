"""The chart with the driver on the host and cert-manager's certificate, and its end by force.

One node lost its label, the other one is away, and a pod holds a card: what an uninstall does then.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cluster import cert_manager, chart_images
from tests.cluster.bed import Bed
from tests.cluster.traces import files
from tests.cluster.waiting import wait_until
from tests.e2e.charts import CHART
from tests.e2e.releases import (
    GONE_TIMEOUT_S,
    NAMESPACE,
    granted,
    install,
    of_pod,
    remove_rest,
    uninstall,
    wait_for_cards,
    wait_for_no_difference,
)
from tests.e2e.workloads import SCENARIO, applied, classic_pod, memory_mib, run_in, wait_for_pod

pytestmark = pytest.mark.timeout(400)

VALUES = (
    "--set=drivers.nvidia.containerDriver=false",
    "--set=certs.certManager.enabled=true",
    "--set=uninstall.allNodes=true",
)
CERTIFICATE = "hami-dra-webhook-serving-cert"
NOT_READY_TIMEOUT_S = 120.0


@pytest.fixture(scope="module")
def on_hosts(bare_bed: Bed) -> Iterator[Bed]:
    """Nodes with a driver of their own, and none of the operator's."""
    for node in bare_bed.nodes:
        node.remove_driver()
        node.install_driver()
    yield bare_bed
    for node in bare_bed.nodes:
        node.uninstall_driver()
        node.bring_driver()


@pytest.fixture(scope="module")
def before(on_hosts: Bed) -> dict[str, frozenset[str]]:
    """The files of each node before there is anything of casaba."""
    return {node.name: frozenset(files(node)) for node in on_hosts.nodes}


@pytest.fixture(scope="module")
def chart(on_hosts: Bed, before: dict[str, frozenset[str]]) -> Iterator[Bed]:
    """The chart, whose certificate somebody else issues meanwhile."""
    with cert_manager.kinds(on_hosts), ThreadPoolExecutor(1) as pool:
        try:
            installed = pool.submit(install, on_hosts, *VALUES)
            cert_manager.issue(on_hosts, NAMESPACE, CERTIFICATE)
            installed.result()
            for node in before:
                wait_for_cards(on_hosts, node, 1)
            yield on_hosts
        finally:
            remove_rest(on_hosts)


def test_the_documents_classic_pod_gets_the_hosts_driver(chart: Bed) -> None:
    with applied(chart, SCENARIO / "pod-compatible.yaml"):
        wait_for_pod(chart, "gpu-test-compatible")
        assert granted(chart, "gpu-test-compatible") == [{"cores": "50", "memory": "10Gi"}]
        assert memory_mib(chart, "gpu-test-compatible") == 10240
        assert "/ 10240MiB" in run_in(chart, "gpu-test-compatible", "nvidia-smi")


def test_the_certificate_is_the_one_that_was_issued(chart: Bed) -> None:
    read = ("get", "secrets", f"--namespace={NAMESPACE}", "-o", "json")
    secrets = json.loads(chart.kubectl(*read).stdout)["items"]
    (serving,) = [one for one in secrets if issued_for(one) == CERTIFICATE]
    mutating = chart.kubectl("get", "mutatingwebhookconfigurations", "-o", "json").stdout
    (configuration,) = json.loads(mutating)["items"]
    trusted = {one["clientConfig"]["caBundle"] for one in configuration["webhooks"]}
    assert trusted == {serving["data"]["ca.crt"]}
    assert serving["data"]["ca.crt"] != serving["data"]["tls.crt"]


def issued_for(secret: dict[str, Any]) -> str | None:
    """The Certificate that a Secret holds."""
    annotations = secret["metadata"].get("annotations", {})
    name: str | None = annotations.get("cert-manager.io/certificate-name")
    return name


def test_an_uninstall_by_force_cleans_what_answers_and_names_the_rest(
    chart: Bed, before: dict[str, frozenset[str]]
) -> None:
    holder = classic_pod("holder", gpu="1", gpumem="256")
    holder["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "edge-1"}
    chart.kubectl("create", "-f", "-", stdin=json.dumps(holder))
    wait_for_pod(chart, "holder")
    try:
        go_on_as_told(chart, uninstall(chart, check=False).stderr)
        chart.kubectl("label", "node", "edge-1", "gpu-")
        chart.node("edge-2").cut()
        wait_until(
            "edge-2 is not Ready", lambda: not chart.node_is_ready("edge-2"), NOT_READY_TIMEOUT_S
        )
        said = uninstall(chart).stderr
        assert "1 pod holds cards: default/holder" in said
        assert "not cleaned, since they are not Ready: edge-2. " in said
        wait_until_clean(chart, "edge-1", before)
        assert of_pod(chart, "holder")["status"]["phase"] == "Running"
    finally:
        chart.node("edge-2").heal()
        chart.kubectl("label", "node", "edge-1", "gpu=on")
        chart.kubectl("delete", "pod", "holder", "--force", "--grace-period=0")
    wait_until("edge-2 is Ready", lambda: chart.node_is_ready("edge-2"), NOT_READY_TIMEOUT_S)
    clean_later(chart, "edge-2")
    wait_until_clean(chart, "edge-2", before)


def go_on_as_told(bed: Bed, refusal: str) -> None:
    """Run the commands by which the uninstall, says its refusal, goes on by force."""
    told = re.search(r"(helm rollback [^,;]*), then (helm upgrade [^,;]*), then uninstall", refusal)
    assert told, refusal
    for command in told.groups():
        bed.helm(*shlex.split(command.replace("CHART", str(CHART)))[1:])


def wait_until_clean(bed: Bed, node: str, before: dict[str, frozenset[str]]) -> None:
    """Until a node has no file that it had not."""
    wait_for_no_difference(
        f"{node} is clean",
        lambda: "\n".join(sorted(frozenset(files(bed.node(node))) - before[node])),
        GONE_TIMEOUT_S,
    )


def clean_later(bed: Bed, node: str) -> None:
    """What the uninstall told to do with a node that was away."""
    wait_until(
        f"the agent of {node} is gone",
        lambda: not bed.kubectl("get", "pods", f"--namespace={NAMESPACE}", "-o", "name").stdout,
        GONE_TIMEOUT_S,
    )
    image = chart_images.reference("node-agent")
    command = ("casaba", "node-clean", "--host-root=/host")
    bed.kubectl("debug", f"node/{node}", "--profile=sysadmin", f"--image={image}", "--", *command)
    wait_until(
        "node-clean has ended",
        lambda: "Succeeded" in bed.kubectl("get", "pods", "-o", "jsonpath={..phase}").stdout,
        GONE_TIMEOUT_S,
        explain=lambda: bed.kubectl("describe", "pods").stdout,
    )
    bed.kubectl("delete", "pods", "--selector=app.kubernetes.io/managed-by=kubectl-debug")
