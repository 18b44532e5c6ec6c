"""What is set of the chart's values, and what is then true and was not before."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.chart.rendering import NAMESPACE, Object, Rendered

AGENT, WEBHOOK, CONTROLLER = (
    "hami-dra-driver-kubelet-plugin",
    "hami-dra-webhook",
    "hami-dra-monitor",
)

PEM = "-----BEGIN CERTIFICATE-----"


def pod_of(chart: Rendered, name: str) -> Object:
    kind = "DaemonSet" if name == AGENT else "Deployment"
    spec: Object = chart.one(kind, name)["spec"]["template"]["spec"]
    return spec


def container_of(chart: Rendered, name: str) -> Object:
    (container,) = pod_of(chart, name)["containers"]
    found: Object = container
    return found


def flags(chart: Rendered, name: str) -> list[str]:
    words: list[str] = container_of(chart, name)["args"]
    return words


def conditions(chart: Rendered) -> str:
    return json.dumps(chart.of("MutatingWebhookConfiguration"))


def hook(chart: Rendered, kind: str = "MutatingWebhookConfiguration") -> Object:
    found: Object = chart.one(kind, WEBHOOK)["webhooks"][0]
    return found


def excluded(chart: Rendered) -> list[str]:
    selector = hook(chart)["namespaceSelector"]["matchExpressions"]
    return [v for e in selector if e["key"] == "kubernetes.io/metadata.name" for v in e["values"]]


def job_args(chart: Rendered, name: str) -> list[str]:
    words: list[str] = chart.one("Job", name)["spec"]["template"]["spec"]["containers"][0]["args"]
    return words


def service(chart: Rendered) -> Object:
    spec: Object = chart.one("Service", CONTROLLER)["spec"]
    return spec


def certificate(chart: Rendered) -> Object:
    spec: Object = chart.one("Certificate", "hami-dra-webhook-serving-cert")["spec"]
    return spec


def labels(chart: Rendered, kind: str) -> list[Object]:
    return [o["metadata"]["labels"] for o in chart.of(kind)]


def policy(chart: Rendered, component: str) -> Object:
    spec: Object = chart.one("NetworkPolicy", f"casaba-{component}")["spec"]
    return spec


Check = Callable[[Rendered], Any]
MONITORS = "monitor.serviceMonitor.enabled=true"
TOLERATION = '[{"key":"a","operator":"Exists"}]'
AFFINITY = '{"nodeAffinity":{}}'
CUSTOM = (f'certs.custom.crt="{PEM}"', 'certs.custom.key="K"')
MANAGED = "certs.certManager.enabled=true"


# What is set, and what is then true and was not before.
CASES: list[tuple[tuple[str, ...], Check]] = [
    (
        ('global.imageRegistry="mirror.example:5000"',),
        lambda c: container_of(c, AGENT)["image"].startswith("mirror.example:5000/node-agent:"),
    ),
    (
        ('global.imagePullSecrets=[{"name":"pull"}]',),
        lambda c: all(pod["imagePullSecrets"] == [{"name": "pull"}] for _, pod in c.pods()),
    ),
    *(
        (
            (f'{value}="example.com/it"',),
            lambda c, flag=flag: (
                f"--{flag}=example.com/it" in flags(c, WEBHOOK)
                and "'example.com/it'" in conditions(c)
            ),
        )
        for value, flag in (
            ("resourceName", "resource-name"),
            ("resourceMem", "resource-mem"),
            ("resourceMemPercentage", "resource-mem-percentage"),
            ("resourceCores", "resource-cores"),
            ("resourcePriority", "resource-priority"),
        )
    ),
    *(
        ((f"conversion.{value}={to}",), lambda c, flag=flag: flag in flags(c, WEBHOOK))
        for value, to, flag in (
            ("defaultGPUNum", "2", "--default-gpu-num=2"),
            ("defaultMemory", "2048", "--default-memory=2048"),
            ("defaultCores", "30", "--default-cores=30"),
            ("gpuCorePolicy", '"force"', "--gpu-core-policy=force"),
            ("memoryFactor", "1024", "--memory-factor=1024"),
            ("refuseOversized", "true", "--refuse-oversized"),
            ("policiesAsConstraints", "true", "--policies-as-constraints"),
        )
    ),
    *(
        case
        for value, name in (("webhook", WEBHOOK), ("controller", CONTROLLER))
        for case in (
            (
                (f"{value}.replicas=3",),
                lambda c, n=name: c.one("Deployment", n)["spec"]["replicas"] == 3,
            ),
            (
                (f'{value}.image.repository="example.com/x"', f'{value}.image.tag="1.2"'),
                lambda c, n=name: container_of(c, n)["image"] == "example.com/x:1.2",
            ),
            (
                (f'{value}.image.pullPolicy="Always"',),
                lambda c, n=name: container_of(c, n)["imagePullPolicy"] == "Always",
            ),
            (
                (f'{value}.resources={{"requests":{{"cpu":"1"}}}}',),
                lambda c, n=name: container_of(c, n)["resources"]["requests"]["cpu"] == "1",
            ),
            (
                (f"{value}.pdb.enabled=false",),
                lambda c, n=name: not c.has("PodDisruptionBudget", n),
            ),
            (
                (f'{value}.pdb.maxUnavailable="50%"',),
                lambda c, n=name: (
                    c.one("PodDisruptionBudget", n)["spec"]["maxUnavailable"] == "50%"
                ),
            ),
            (
                (f'{value}.priorityClassName="low"',),
                lambda c, n=name: pod_of(c, n)["priorityClassName"] == "low",
            ),
            (
                (f'{value}.nodeSelector={{"a":"b"}}',),
                lambda c, n=name: pod_of(c, n).get("nodeSelector") == {"a": "b"},
            ),
            (
                (f"{value}.tolerations={TOLERATION}",),
                lambda c, n=name: pod_of(c, n).get("tolerations") == json.loads(TOLERATION),
            ),
            (
                (f"{value}.affinity={AFFINITY}",),
                lambda c, n=name: pod_of(c, n)["affinity"] == json.loads(AFFINITY),
            ),
            ((f'{value}.logLevel="debug"',), lambda c, n=name: "--log-level=debug" in flags(c, n)),
        )
    ),
    (('webhook.tlsMinVersion="1.2"',), lambda c: "--tls-minimum=1.2" in flags(c, WEBHOOK)),
    (
        ("webhook.config.timeoutSeconds=5",),
        lambda c: hook(c)["timeoutSeconds"] == 5 and "--review-limit=4" in flags(c, WEBHOOK),
    ),
    (
        ("webhook.config.mutating.enabled=false",),
        lambda c: not c.of("MutatingWebhookConfiguration"),
    ),
    (
        ('webhook.config.mutating.failurePolicy="Ignore"',),
        lambda c: hook(c)["failurePolicy"] == "Ignore",
    ),
    (
        ("webhook.config.validating.enabled=false",),
        lambda c: not c.of("ValidatingWebhookConfiguration"),
    ),
    (
        ('webhook.config.validating.failurePolicy="Fail"',),
        lambda c: hook(c, "ValidatingWebhookConfiguration")["failurePolicy"] == "Fail",
    ),
    (("webhook.config.scope.enabled=false",), lambda c: not excluded(c)),
    (
        ("webhook.config.scope.excludeReleaseNamespace=false",),
        lambda c: NAMESPACE not in excluded(c),
    ),
    (
        ('webhook.config.scope.excludedNamespaces=["mine"]',),
        lambda c: set(excluded(c)) == {"mine", NAMESPACE},
    ),
    (("admissionPolicies.enabled=false",), lambda c: not c.of("ValidatingAdmissionPolicy")),
    (
        ('certs.custom.crt="C"', 'certs.custom.key="K"', 'certs.custom.ca="A"'),
        lambda c: (
            c.one("Secret", "hami-dra-webhook-custom-tls")["data"]
            == {"ca.crt": "QQ==", "tls.crt": "Qw==", "tls.key": "Sw=="}
            and "--trust-secret=hami-dra-webhook-custom-tls" in flags(c, CONTROLLER)
        ),
    ),
    ((MANAGED,), lambda c: c.has("Issuer", "hami-dra-selfsigned")),
    (
        (MANAGED, 'certs.certManager.privateKeyRotationPolicy="Never"'),
        lambda c: certificate(c)["privateKey"]["rotationPolicy"] == "Never",
    ),
    (
        (MANAGED, 'certs.certManager.issuerRef={"name":"ca","kind":"ClusterIssuer"}'),
        lambda c: certificate(c)["issuerRef"]["name"] == "ca",
    ),
    (("drivers.nvidia.enabled=false",), lambda c: not c.of("DaemonSet") and c.cleaners()),
    (
        ("drivers.nvidia.containerDriver=false",),
        lambda c: "--driver-root=/host" in flags(c, AGENT),
    ),
    (
        ('drivers.nvidia.image={"repository":"r","tag":"2","pullPolicy":"Never"}',),
        lambda c: (
            container_of(c, AGENT)["image"] == "r:2"
            and container_of(c, AGENT)["imagePullPolicy"] == "Never"
        ),
    ),
    (
        ('drivers.nvidia.serviceAccount="other"',),
        lambda c: (
            c.has("ServiceAccount", "other")
            and f"system:serviceaccount:{NAMESPACE}:other"
            in json.dumps(c.of("ValidatingAdmissionPolicy"))
        ),
    ),
    (
        ('drivers.nvidia.resources={"limits":{"memory":"1Gi"}}',),
        lambda c: container_of(c, AGENT)["resources"]["limits"]["memory"] == "1Gi",
    ),
    (
        ('drivers.nvidia.daemonSet.nodeSelector={"pool":"x"}',),
        lambda c: pod_of(c, AGENT)["nodeSelector"] == {"pool": "x", "gpu": "on"},
    ),
    (
        (f"drivers.nvidia.daemonSet.tolerations={TOLERATION}",),
        lambda c: pod_of(c, AGENT)["tolerations"] == json.loads(TOLERATION),
    ),
    (
        (f"drivers.nvidia.daemonSet.affinity={AFFINITY}",),
        lambda c: pod_of(c, AGENT).get("affinity") == json.loads(AFFINITY),
    ),
    (
        ('drivers.nvidia.daemonSet.priorityClassName="low"',),
        lambda c: pod_of(c, AGENT)["priorityClassName"] == "low",
    ),
    (
        ('drivers.nvidia.contextAllowance="1Gi"', 'drivers.nvidia.contextSize="128Mi"'),
        lambda c: {"--context-allowance=1Gi", "--context-size=128Mi"} <= {*flags(c, AGENT)},
    ),
    (
        ('drivers.nvidia.kubeletDir="/var/lib/k0s/kubelet"',),
        lambda c: "--kubelet-dir=/var/lib/k0s/kubelet" in flags(c, AGENT),
    ),
    (("drivers.nvidia.announce=false",), lambda c: "--no-announce" in flags(c, AGENT)),
    (('drivers.nvidia.logLevel="debug"',), lambda c: "--log-level=debug" in flags(c, AGENT)),
    (
        ("drivers.nvidia.metricsPort=9999",),
        lambda c: (
            "--metrics-address=:9999" in flags(c, AGENT)
            and policy(c, "node-agent")["ingress"][0]["ports"][0]["port"] == 9999
        ),
    ),
    (("drivers.nvidia.legacyMetrics=true",), lambda c: "--legacy-metrics" in flags(c, AGENT)),
    (("monitor.enabled=false",), lambda c: not c.has("Service", CONTROLLER)),
    (
        ('monitor.service.type="NodePort"',),
        lambda c: service(c)["type"] == "NodePort" and service(c)["ports"][0]["nodePort"] == 31995,
    ),
    (
        ('monitor.service.type="NodePort"', "monitor.service.nodePort=30001"),
        lambda c: service(c)["ports"][0].get("nodePort") == 30001,
    ),
    (("monitor.service.port=80",), lambda c: service(c)["ports"][0]["port"] == 80),
    (
        ("monitor.legacyMetrics=false",),
        lambda c: not any("legacy" in f and "no" not in f for f in flags(c, CONTROLLER)),
    ),
    (
        ("monitor.legacySchedulerMetrics=true",),
        lambda c: "--legacy-scheduler-metrics" in flags(c, CONTROLLER),
    ),
    ((MONITORS,), lambda c: len(c.of("ServiceMonitor")) == 3),
    (
        (MONITORS, 'monitor.serviceMonitor.interval="30s"'),
        lambda c: (
            all(m["spec"]["endpoints"][0]["interval"] == "30s" for m in c.of("ServiceMonitor"))
            and c.of("ServiceMonitor")
        ),
    ),
    (
        (MONITORS, 'monitor.serviceMonitor.labels={"a":"b"}'),
        lambda c: [one for one in labels(c, "ServiceMonitor") if one.get("a") == "b"],
    ),
    (
        ("monitor.prometheusRule.enabled=true", 'monitor.prometheusRule.labels={"a":"b"}'),
        lambda c: [one for one in labels(c, "PrometheusRule") if one["a"] == "b"],
    ),
    (
        ("monitor.dashboards.enabled=true", 'monitor.dashboards.labels={"a":"b"}'),
        lambda c: [one for one in labels(c, "ConfigMap") if one.get("a") == "b"],
    ),
    (("networkPolicy.enabled=false",), lambda c: not c.of("NetworkPolicy")),
    (
        ("networkPolicy.apiServerPorts=[7443]",),
        lambda c: policy(c, "webhook")["egress"][0]["ports"] == [{"protocol": "TCP", "port": 7443}],
    ),
    (
        ('networkPolicy.metricsFrom=[{"namespaceSelector":{}}]',),
        lambda c: policy(c, "webhook")["ingress"][1].get("from") == [{"namespaceSelector": {}}],
    ),
    (
        ("preinstallCheck.enabled=false",),
        lambda c: not c.has("Job", "hami-dra-preinstall-check"),
    ),
    (("uninstall.force=true",), lambda c: "--force" in job_args(c, "hami-dra-preuninstall-check")),
    (("uninstall.cleanNodes=false",), lambda c: not c.cleaners()),
    (
        ("uninstall.allNodes=true",),
        lambda c: (
            [
                (spec["nodeSelector"], spec["tolerations"], "affinity" in spec)
                for spec in (one["spec"]["template"]["spec"] for one in c.cleaners())
            ]
            == [({"kubernetes.io/os": "linux"}, [{"operator": "Exists"}], False)]
        ),
    ),
    (
        ("uninstall.timeoutSeconds=600",),
        lambda c: "--timeout-s=600" in job_args(c, "hami-dra-uninstall"),
    ),
]
