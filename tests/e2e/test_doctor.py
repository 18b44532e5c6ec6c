"""A real cluster with one fault after the other, and what casaba and its doctor say of each."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from casaba.policy.conflicts import HANDSHAKE, REGISTER
from casaba.services.controllers.certificate_making import Pair, new_serving, read_pair
from casaba.settings.node_agent import NodeAgentSettings
from tests.cluster.bed import Bed
from tests.cluster.build import OLD_KUBERNETES
from tests.cluster.mounts import DRIVER_ROOT
from tests.cluster.waiting import wait_until
from tests.e2e.charts import CHART, RELEASE
from tests.e2e.examinations import (
    Report,
    backdate,
    doctor,
    doctor_of_agent,
    doctor_on_host,
    pods,
    replace_pods,
    told_by_agent,
)
from tests.e2e.releases import NAMESPACE, PLACE, WAITING, wait_for_cards, wait_for_event
from tests.e2e.test_helm import NODES, VALUES
from tests.e2e.workloads import (
    POD_TIMEOUT_S,
    SLICE_TIMEOUT_S,
    applied,
    claim,
    container,
    holding,
    pod,
    wait_for_pod,
)

pytestmark = pytest.mark.timeout(400)

GATE_OFF = ("--feature-gates=DRAConsumableCapacity=false",)
REASONS = {"edge-1": "SliceFieldsDropped", "edge-2": "DevicePluginOffersCards"}
UNCHECKED = "--set=preinstallCheck.enabled=false"
AGENT = "hami-dra-driver-kubelet-plugin"
WEBHOOK, CONTROLLER = "hami-dra-webhook", "hami-dra-monitor"
RETRIED_S = NodeAgentSettings.crippled_retry_s + SLICE_TIMEOUT_S
SERVED_S = 45.0
"""So long a certificate is good that is to be seen both good and expired."""

# -- before an installation


@pytest.fixture(scope="module")
def empty(bare_bed: Bed) -> Iterator[Bed]:
    """A cluster without casaba; nothing is left in it, and its own control plane is back."""
    yield bare_bed
    bare_bed.replace_control_plane()


def test_no_labelled_node(empty: Bed) -> None:
    empty.kubectl("label", "node", *NODES, "gpu-")
    try:
        report = doctor(empty, "--preinstall")
    finally:
        empty.kubectl("label", "node", *NODES, "gpu=on")
    assert report.code == 0
    line = report.line("!", "labelled nodes")
    assert "none of 2 nodes has the label gpu=on" in line
    assert line.endswith("to do: kubectl label node NODE gpu=on")


def test_a_hami_that_is_gone(empty: Bed) -> None:
    """By the times that the API server itself keeps; what it wrote has no zone."""
    notes = {REGISTER: "[{}]", HANDSHAKE: f"Reported_{datetime.now():%Y.%m.%d %H:%M:%S}"}
    written = [f"{name}={text}" for name, text in notes.items()]
    try:
        empty.kubectl("annotate", "node", "edge-1", *written, "--field-manager=hami")
        there = doctor(empty, "--preinstall")
        backdate(empty, "edge-1", "hami", timedelta(minutes=10))
        gone = doctor(empty, "--preinstall", "--json")
    finally:
        empty.kubectl("annotate", "node", "edge-1", f"{REGISTER}-", f"{HANDSHAKE}-", "touched-")
    line = there.line("✘", "device plugins, old HAMi")
    assert "edge-1 (an old HAMi); to do: " in line
    assert line.endswith(f"kubectl annotate node NODE {REGISTER}- {HANDSHAKE}-")
    assert gone.wrong() == set()
    assert doctor(empty, "--preinstall", "--json").wrong() == set()


def test_a_version_too_old(empty: Bed, old_api_server: Path) -> None:
    empty.replace_control_plane(api_server=old_api_server)
    told, report = doctor(empty, "--preinstall"), doctor(empty, "--preinstall", "--json")
    assert told.code == report.code == 1
    line = told.line("✘", "Kubernetes version")
    assert f"the API server is v{OLD_KUBERNETES}; to do: upgrade the cluster to Kubernetes" in line
    assert report.wrong() == {"cluster.version", "cluster.resource-api"}
    assert "resource.k8s.io/v1 is not served" in report.findings["cluster.resource-api"]["seen"]
    assert doctor(empty, "--json").wrong() == {"cluster.version", "cluster.resource-api"}


@dataclass(frozen=True)
class Start:
    """What was told while the gate was off and edge-2 had a device plugin."""

    bed: Bed
    before: Report
    refused: str
    after: Report
    nodes: dict[str, Report]


@pytest.fixture(scope="module")
def start(empty: Bed) -> Iterator[Start]:
    """An installation that should have waited; by now all is well with it."""
    empty.replace_control_plane(GATE_OFF)
    with empty.device_plugin("edge-2", "nvidia.com/gpu"):
        before = doctor(empty, "--preinstall")
        refused = install(empty, check=False)
        install(empty, UNCHECKED)
        nodes = {node: told_by_agent(empty, node, reason) for node, reason in REASONS.items()}
        for node, reason in REASONS.items():
            wait_for_event(empty, node, reason)
        after = doctor(empty, "--json")
    empty.replace_control_plane()
    for node in NODES:
        wait_for_cards(empty, node, 1, RETRIED_S)
    wait_until(
        "an agent is ready on each node",
        lambda: "parts.agents" not in doctor(empty, "--json").wrong(),
        POD_TIMEOUT_S,
    )
    yield Start(empty, before, refused, after, nodes)
    empty.helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--no-hooks", *WAITING)
    empty.kubectl("delete", "resourceslices", "--all")


def install(bed: Bed, *flags: str, check: bool = True) -> str:
    """What Helm says of it."""
    words = (
        "upgrade",
        "--install",
        RELEASE,
        str(CHART),
        PLACE,
        "--create-namespace",
        *VALUES,
        *WAITING,
    )
    return bed.helm(*words, *flags, check=check).stderr


def test_the_gate_and_a_device_plugin_before_an_installation(start: Start) -> None:
    assert start.before.code == 1
    gate = start.before.line("✘", "feature gate, API server")
    assert "DRAConsumableCapacity is off" in gate
    assert "to do: take DRAConsumableCapacity=false out of --feature-gates of kube-" in gate
    plugin = start.before.line("✘", "device plugins, old HAMi")
    assert "edge-2 (a device plugin)" in plugin
    assert "take the device plugin (or the old HAMi) away from it" in plugin
    assert start.before.out.splitlines()[-1].startswith("2 wrong, ")


def test_helm_refuses_and_shows_why(start: Start) -> None:
    assert "✘ feature gate, API server: DRAConsumableCapacity is off" in start.refused
    assert "edge-2 (a device plugin)" in start.refused
    assert "Job/hami-system/hami-dra-preinstall-check not ready" in start.refused


def test_agents_publish_no_card_that_they_could_not_keep(start: Start) -> None:
    assert start.after.code == 1
    assert start.after.wrong() >= {"cluster.gate", "nodes.conflicts", "parts.slices"}
    slices = start.after.findings["parts.slices"]["seen"]
    assert "no slice of edge-1" in slices
    assert "edge-2" in slices
    told = start.after.findings["parts.problems"]["seen"].splitlines()
    assert dict(line.split(": ")[:2] for line in told) == REASONS
    assert "so none is published" in told[0]
    assert "Remove the plugin from this node" in told[1]


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("edge-1", "SliceFieldsDropped: the API server dropped spec.devices[0]"),
        ("edge-2", "DevicePluginOffersCards: a device plugin offers the cards of node edge-2"),
    ],
)
def test_the_node_itself_tells_why(start: Start, node: str, words: str) -> None:
    assert start.nodes[node].code == 1
    assert start.nodes[node].wrong() == {"node.agent"}
    assert words in start.nodes[node].findings["node.agent"]["seen"]


# -- afterwards


@pytest.fixture
def well(start: Start) -> Bed:
    """A cluster in which casaba serves the cards of both nodes."""
    return start.bed


def test_nothing_is_wrong(well: Bed) -> None:
    assert doctor(well, "--json").wrong() == set()
    assert doctor_of_agent(well, "edge-1").wrong() == set()
    assert doctor_on_host(well.node("edge-1")).wrong() == set()


def test_cdi_is_off(well: Bed) -> None:
    node = well.node("edge-2")
    config = node.folder / "etc/containerd.toml"
    before = config.read_text()
    config.write_text(before.replace("enable_cdi = true", "enable_cdi = false"))
    try:
        report = doctor_on_host(node)
    finally:
        config.write_text(before)
    assert (report.code, report.wrong()) == (1, {"node.runtime"})
    finding = report.findings["node.runtime"]
    assert "CDI is off in" in finding["seen"]
    assert 'set enable_cdi = true under [plugins."io.containerd.cri.v1' in finding["advice"]


def test_a_wrong_driver_root(well: Bed) -> None:
    report = doctor_on_host(well.node("edge-1"), "--driver-root=/opt")
    assert (report.code, report.wrong()) == (1, {"node.driver"})
    finding = report.findings["node.driver"]
    assert f"no libnvidia-ml.so.1 below /opt, but below {DRIVER_ROOT}" in finding["seen"]
    assert "drivers.nvidia.containerDriver=true" in finding["advice"]


def test_a_driver_that_goes_and_comes_late(well: Bed) -> None:
    node = well.node("edge-2")
    node.remove_driver()
    try:
        here, cluster = told_by_agent(well, "edge-2", "DriverMissing"), doctor(well, "--json")
    finally:
        node.bring_driver()
    assert "edge-2: DriverMissing: " in cluster.findings["parts.problems"]["seen"]
    assert here.wrong() == {"node.driver", "node.agent"}
    assert "the GPU Operator" in here.findings["node.driver"]["advice"]
    wait_for_cards(well, "edge-2", 1)
    assert doctor_of_agent(well, "edge-2").wrong() == set()


def test_nobody_reaches_the_webhook(well: Bed) -> None:
    with closed_service(well):
        report = doctor(well, "--json")
    assert (report.code, report.wrong()) == (1, {"webhook.trial"})
    finding = report.findings["webhook.trial"]
    assert 'failed calling webhook "mutate.hami.io"' in finding["seen"]
    assert "the API server can't reach the webhook" in finding["advice"]


@contextlib.contextmanager
def closed_service(bed: Bed) -> Iterator[None]:
    """The webhook's Service leads to a port at which nobody listens."""

    def lead_to(port: object) -> None:
        change = [{"op": "replace", "path": "/spec/ports/0/targetPort", "value": port}]
        patch = ("--type=json", f"-p={json.dumps(change)}")
        bed.kubectl("patch", "service", WEBHOOK, f"--namespace={NAMESPACE}", *patch)

    def refused() -> bool:
        return "connection refused" in create_classic_pod(bed)

    lead_to(1)
    try:
        replace_pods(bed, "webhook")  # the API server keeps connections
        wait_for_webhooks(bed, ready=2)
        wait_until("the API server calls the other port", refused, POD_TIMEOUT_S)
        yield
    finally:
        lead_to("https")
        wait_until("the webhook is called", lambda: not create_classic_pod(bed), POD_TIMEOUT_S)


def create_classic_pod(bed: Bed) -> str:
    """What is said against a pod that is only tried."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    waiting = {"name": "c", "image": "none", "resources": limits}
    tried = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "tried"},
        "spec": {"containers": [waiting]},
    }
    command = ("create", "--dry-run=server", "-f", "-")
    return bed.kubectl(*command, stdin=json.dumps(tried), check=False).stderr.strip()


def test_a_certificate_that_has_expired(well: Bed) -> None:
    with no_controller(well):
        serve(well, short_lived(well))
        replace_pods(well, "webhook")
        wait_for_webhooks(well, ready=2)
        wait_for_webhooks(well, ready=0)
        report = doctor(well, "--json")
    assert report.code == 1
    assert report.wrong() >= {"webhook.authority", "webhook.replicas", "webhook.trial"}
    finding = report.findings["webhook.authority"]
    assert f"the certificate that {WEBHOOK}-" in finding["seen"]
    assert "serves has expired" in finding["seen"]
    assert "the log of the controller" in finding["advice"]


@contextlib.contextmanager
def no_controller(bed: Bed) -> Iterator[None]:
    """Nobody keeps the certificates; once somebody does again, a good one is served."""
    scale(bed, CONTROLLER, 0)
    wait_until("the controller is gone", lambda: not pods(bed, "controller"), POD_TIMEOUT_S)
    try:
        yield
    finally:
        spoilt = served_certificate(bed)
        scale(bed, CONTROLLER, 2)
        wait_until(
            "the controller makes another certificate",
            lambda: served_certificate(bed) != spoilt,
            POD_TIMEOUT_S,
        )
        replace_pods(bed, "webhook")  # the kubelet takes its time to tell those that run
        wait_for_webhooks(bed, ready=2)


def scale(bed: Bed, deployment: str, replicas: int) -> None:
    bed.kubectl(
        "scale", f"--namespace={NAMESPACE}", f"deploy/{deployment}", f"--replicas={replicas}"
    )


def secret(bed: Bed, name: str) -> dict[str, bytes]:
    said = bed.kubectl("get", "secret", f"--namespace={NAMESPACE}", name, "-o=json").stdout
    return {key: base64.b64decode(held) for key, held in json.loads(said)["data"].items()}


def served_certificate(bed: Bed) -> bytes:
    return secret(bed, f"{WEBHOOK}-tls")["tls.crt"]


def short_lived(bed: Bed) -> Pair:
    """A certificate of the cluster's own authority, for the webhook's Service."""
    held = secret(bed, f"{WEBHOOK}-ca")
    authority = read_pair(held["ca.crt"], held["ca.key"])
    assert isinstance(authority, Pair)
    names = [f"{WEBHOOK}.{NAMESPACE}.svc"]
    return new_serving(authority, names, datetime.now(UTC), SERVED_S)


def serve(bed: Bed, pair: Pair) -> None:
    """Put it where the webhook's pods find it."""
    files = {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem}
    encoded = {name: base64.b64encode(content).decode() for name, content in files.items()}
    patch = ("--type=merge", f"-p={json.dumps({'data': encoded})}")
    bed.kubectl("patch", "secret", f"--namespace={NAMESPACE}", f"{WEBHOOK}-tls", *patch)


def wait_for_webhooks(bed: Bed, ready: int) -> None:
    """Until so many replicas would be called."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{WEBHOOK}"

    def are_ready() -> bool:
        status: dict[str, Any] = (bed.api.object(path) or {"status": {}})["status"]
        return bool(status.get("readyReplicas", 0) == ready)

    logs = ("logs", f"--namespace={NAMESPACE}", f"deploy/{WEBHOOK}", "--tail=20")
    wait_until(
        f"{ready} replicas of the webhook are ready",
        are_ready,
        POD_TIMEOUT_S,
        explain=lambda: bed.kubectl(*logs, check=False).stdout,
    )


def test_a_guard_that_is_not_alive(well: Bed) -> None:
    stripped = container("c", "bare")
    stripped["securityContext"] = {"privileged": True}
    stripped["command"] = ["sh", "-c", "umount /etc/ld.so.preload && exec sleep 1000000"]
    with applied(well, claim("bare", ("gpu", "1Gi", 10)), pod("bare", ["bare"], [stripped])):
        wait_for_pod(well, "bare")
        with holding(well, "bare", 64, "c"):
            cluster, node = doctor(well, "--json"), doctor_of_agent(well, "edge-1")
    assert (cluster.code, cluster.wrong()) == (1, {"parts.guards"})
    assert "default/bare c" in cluster.findings["parts.guards"]["seen"]
    assert "is the program linked statically" in cluster.findings["parts.guards"]["advice"]
    assert (node.code, node.wrong()) == (1, {"node.guards"})
    assert "default/bare c (1)" in node.findings["node.guards"]["seen"]
