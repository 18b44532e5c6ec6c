"""What the chart makes is what the API takes, and its parts know each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from casaba.simulation.api_server.resources import RESOURCES
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.chart.rendering import NAMESPACE, Object, Rendered, containers, rendered
from tests.chart.structure import misfits
from tests.component.api_server.kubectl import Kubectl

MONITORING = (
    "monitor.serviceMonitor.enabled=true",
    "monitor.prometheusRule.enabled=true",
    "monitor.dashboards.enabled=true",
)
# Values under which every template is used once.
MATRIX: dict[str, tuple[str, ...]] = {
    "defaults": (),
    "monitoring": MONITORING,
    "cert-manager": ("certs.certManager.enabled=true", 'monitor.service.type="NodePort"'),
    "custom certificate": ('certs.custom.crt="C"', 'certs.custom.key="K"'),
    "host driver": ("drivers.nvidia.containerDriver=false", "drivers.nvidia.legacyMetrics=true"),
    "no agent": ("drivers.nvidia.enabled=false", *MONITORING),
    "one of each": ("webhook.replicas=1", "controller.replicas=1"),
    "little": (
        "webhook.config.mutating.enabled=false",
        "webhook.config.validating.enabled=false",
        "admissionPolicies.enabled=false",
        "networkPolicy.enabled=false",
        "preinstallCheck.enabled=false",
        "monitor.enabled=false",
        "uninstall.cleanNodes=false",
    ),
    "busy": (
        'global.imagePullSecrets=[{"name":"pull"}]',
        'drivers.nvidia.daemonSet.affinity={"nodeAffinity":{}}',
        'drivers.nvidia.daemonSet.nodeSelector={"pool":"x"}',
        'webhook.tolerations=[{"operator":"Exists"}]',
        'controller.nodeSelector={"a":"b"}',
        'networkPolicy.metricsFrom=[{"namespaceSelector":{}}]',
    ),
}
CLUSTER_SCOPED = (
    "ClusterRole",
    "ClusterRoleBinding",
    "DeviceClass",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)
# Made by the controller, by cert-manager, or by the job before the installation.
MADE_ELSEWHERE = ("hami-dra-webhook-tls",)


@pytest.fixture(params=MATRIX, ids=str)
def chart(request: pytest.FixtureRequest) -> Rendered:
    return rendered(*MATRIX[request.param])


def made(chart: Rendered) -> list[Object]:
    return [*chart.objects, *chart.cleaners()]


def test_fields_are_those_of_the_api(chart: Rendered) -> None:
    assert [m for o in made(chart) for m in misfits(o)] == []


def test_names_are_unique(chart: Rendered) -> None:
    names = [
        (o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in made(chart)
    ]
    assert len(names) == len(set(names))


def test_namespaces_are_said(chart: Rendered) -> None:
    for o in made(chart):
        namespace = o["metadata"].get("namespace")
        if o["kind"] in CLUSTER_SCOPED:
            assert namespace is None
        else:
            assert namespace in (NAMESPACE, "default"), o["metadata"]["name"]


def test_everything_is_labelled(chart: Rendered) -> None:
    for o in made(chart):
        labels = o["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "casaba"
        assert labels["app.kubernetes.io/component"]


def test_selectors_find_their_own_pods_only(chart: Rendered) -> None:
    pods = [(owner, owner["spec"]["template"]["metadata"]["labels"]) for owner, _ in chart.pods()]
    for owner, _ in chart.pods():
        if owner["kind"] == "Job":
            continue
        wanted = owner["spec"]["selector"]["matchLabels"].items()
        found = [other["metadata"]["name"] for other, labels in pods if wanted <= labels.items()]
        assert found == [owner["metadata"]["name"]]


def test_services_lead_to_ports(chart: Rendered) -> None:
    for service in chart.of("Service"):
        wanted = dict(service["spec"]["selector"])
        wanted.pop("casaba.dev/leads", None)
        (pod,) = (
            pod
            for owner, pod in chart.pods()
            if wanted.items() <= owner["spec"]["template"]["metadata"]["labels"].items()
        )
        ports = {port["name"] for c in pod["containers"] for port in c["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


def test_the_webhook_is_where_the_api_server_looks(chart: Rendered) -> None:
    configurations = chart.of("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    for webhook in (w for c in configurations for w in c["webhooks"]):
        named = webhook["clientConfig"]["service"]
        service = chart.one("Service", named["name"])
        assert named["namespace"] == service["metadata"]["namespace"]
        assert 443 in [port["port"] for port in service["spec"]["ports"]]
        assert webhook["matchConditions"]
        assert webhook["sideEffects"] in ("None", "NoneOnDryRun")


def test_each_pod_has_its_account(chart: Rendered) -> None:
    accounts = {account["metadata"]["name"] for account in chart.of("ServiceAccount")}
    used = set()
    for owner, pod in chart.pods():
        if pod.get("automountServiceAccountToken") is False:
            continue
        assert pod["serviceAccountName"] in accounts, owner["metadata"]["name"]
        used.add(pod["serviceAccountName"])
    assert used == accounts, "an account that nobody uses"


def test_roles_are_bound_to_accounts(chart: Rendered) -> None:
    def keys(*kinds: str) -> set[tuple[str, str | None, str]]:
        return {
            (o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"])
            for o in chart.of(*kinds)
        }

    bound = set()
    for binding in chart.of("ClusterRoleBinding", "RoleBinding"):
        role = binding["roleRef"]
        namespace = binding["metadata"].get("namespace") if role["kind"] == "Role" else None
        bound.add((role["kind"], namespace, role["name"]))
        for subject in binding["subjects"]:
            assert chart.has(subject["kind"], subject["name"])
            assert subject["namespace"] == NAMESPACE
    assert bound == keys("ClusterRole", "Role")


def test_nothing_is_granted_by_wildcard(chart: Rendered) -> None:
    rules = [rule for role in chart.of("ClusterRole", "Role") for rule in role["rules"]]
    assert "*" not in json.dumps([[r["apiGroups"], r["resources"], r["verbs"]] for r in rules])


def test_nobody_reads_secrets_at_large(chart: Rendered) -> None:
    for role in chart.of("ClusterRole", "Role"):
        for rule in role["rules"]:
            if "secrets" in rule["resources"]:
                assert role["kind"] == "Role"
                assert rule["verbs"] == ["create"] or rule["resourceNames"]


def test_the_agent_has_no_pods_and_no_secrets() -> None:
    chart = rendered()
    role = chart.one("ClusterRole", "hami-dra-driver-clusterrole")
    granted = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert granted == {"nodes", "resourceclaims", "resourceslices"}


def test_volumes_are_there(chart: Rendered) -> None:
    for _, pod in chart.pods():
        volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
        mounted = {m["name"] for c in containers(pod) for m in c.get("volumeMounts", ())}
        assert mounted == volumes.keys()
        for volume in volumes.values():
            if secret := volume.get("secret"):
                name = secret["secretName"]
                assert name in MADE_ELSEWHERE or chart.has("Secret", name)
            if config := volume.get("configMap"):
                assert chart.has("ConfigMap", config["name"])


def test_pods_are_confined(chart: Rendered) -> None:
    for owner, pod in chart.pods():
        on_the_host = owner["kind"] == "DaemonSet"
        for container in containers(pod):
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True
            if not on_the_host:
                assert pod["securityContext"]["runAsNonRoot"] is True
                assert security["capabilities"] == {"drop": ["ALL"]}
                assert security["allowPrivilegeEscalation"] is False
            privileged = security.get("privileged", False)
            assert privileged == (container["name"] == "node-agent")


def test_daemons_are_probed_and_sized(chart: Rendered) -> None:
    for owner, pod in chart.pods():
        if owner["kind"] == "Job" or "node-cleaner" in owner["metadata"]["name"]:
            continue
        (container,) = pod["containers"]
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()
        assert container["resources"]["requests"]
        assert container["resources"]["limits"]["memory"]


def test_images_are_pinned(chart: Rendered) -> None:
    for _, pod in chart.pods():
        for container in containers(pod):
            name, _, tag = container["image"].rpartition(":")
            assert name
            assert tag not in ("", "latest")


def test_an_update_leaves_no_gap() -> None:
    chart = rendered()
    agent = chart.one("DaemonSet", "hami-dra-driver-kubelet-plugin")
    assert agent["spec"]["updateStrategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    (container,) = agent["spec"]["template"]["spec"]["containers"]
    assert not [port for port in container["ports"] if "hostPort" in port]
    for deployment in chart.of("Deployment"):
        assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_the_driver_may_come_later() -> None:
    for sets in ((), ("drivers.nvidia.containerDriver=false",)):
        agent = rendered(*sets).one("DaemonSet", "hami-dra-driver-kubelet-plugin")
        (container,) = agent["spec"]["template"]["spec"]["containers"]
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
        assert mounts["driver"]["mountPropagation"] == "HostToContainer"
        assert mounts["driver"]["readOnly"] is True


def test_hooks_leave_nothing(chart: Rendered) -> None:
    for o in chart.objects:
        annotations = o["metadata"].get("annotations", {})
        if "helm.sh/hook" not in annotations:
            assert o["kind"] != "Job"
            continue
        policies = annotations["helm.sh/hook-delete-policy"].split(",")
        assert {"before-hook-creation", "hook-succeeded", "hook-failed"} == set(policies)
        if o["kind"] == "Job":
            told = annotations["helm.sh/hook-output-log-policy"]
            assert told == "hook-succeeded,hook-failed"
            assert o["spec"]["backoffLimit"] == 0


def test_accounts_come_before_their_jobs(chart: Rendered) -> None:
    def weight(o: Object) -> int:
        return int(o["metadata"]["annotations"]["helm.sh/hook-weight"])

    def events(o: Object) -> set[str]:
        return set(o["metadata"]["annotations"]["helm.sh/hook"].split(","))

    for job in chart.of("Job"):
        account = job["spec"]["template"]["spec"]["serviceAccountName"]
        before = [
            o
            for o in chart.objects
            if o["metadata"]["name"] == account
            and "helm.sh/hook" in o["metadata"].get("annotations", {})
            and o["kind"] not in ("Job", "ConfigMap")
        ]
        assert {"ServiceAccount"} < {o["kind"] for o in before}
        assert all(weight(o) < weight(job) and events(job) <= events(o) for o in before)


@pytest.fixture
async def kubectl(tmp_path: Path) -> Any:
    async with SimulatedApiServer() as server:
        config = tmp_path / "kubeconfig"
        config.write_text(json.dumps(server.kubeconfig()))
        yield Kubectl(kubeconfig=config, folder=tmp_path)


@pytest.mark.parametrize("case", MATRIX)
async def test_the_api_server_takes_what_it_knows(case: str, kubectl: Kubectl) -> None:
    await kubectl.ok("create", "namespace", NAMESPACE)
    known = {info.kind for info in RESOURCES}
    taken = [o for o in rendered(*MATRIX[case]).objects if o["kind"] in known]
    assert len(taken) > 5
    said = await kubectl.ok("apply", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump_all(taken))
    assert len(said.splitlines()) == len(taken)
