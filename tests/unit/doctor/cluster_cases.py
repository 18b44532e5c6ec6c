"""What is seen of a cluster, and what each check takes it for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from casaba.policy.diagnosis import Unseen
from casaba.policy.diagnosis.cluster.observations import (
    AgentMetrics,
    Canary,
    ServedCertificate,
    Trial,
    Webhooks,
)
from casaba.settings.host_paths import DRIVER_NAME
from tests.unit.doctor import healthy
from tests.unit.doctor.healthy import NOW_S, device_class, event, node, pod, webhooks
from tests.unit.doctor.releases import (
    AT_SITE,
    ELSEWHERE,
    HAMI,
    RENAMED,
    SILENT,
    SITE,
    hami,
    stands_for,
    tried,
)

PLUGIN = {"nvidia.com/gpu": "4"}
OLD = {"gitVersion": "v1.33.5"}
V134 = {"gitVersion": "v1.34.2"}
OFF_FLAG = {
    "metadata": {"name": "kube-scheduler-a"},
    "spec": {"containers": [{"command": ["s", "--feature-gates=DRAConsumableCapacity=false"]}]},
}
ON_FLAG = {
    "metadata": {"name": "kube-scheduler-a"},
    "spec": {"containers": [{"command": ["s", "--feature-gates=DRAConsumableCapacity=true"]}]},
}
CONFIG_FLAG = {
    "metadata": {"name": "kube-scheduler-a"},
    "spec": {"containers": [{"command": ["s", "--config=/etc/s.yaml"]}]},
}
NOT_CALLED = 'failed calling webhook "mutate.hami.io": failed to call webhook: Post "https://x": '
WHOLE = {"spec": {"nodeName": "edge-1", "devices": [{"name": "gpu-0"}]}}
OLD_HAMI = Webhooks(
    mutating=(
        *webhooks().mutating,
        {"metadata": {"name": "hami-webhook"}, "webhooks": [{"name": "vgpu.hami.io"}]},
    ),
    validating=webhooks().validating,
)
NO_WEBHOOK: dict[str, Any] = {
    "webhooks": Webhooks(mutating=(), validating=()),
    "pods": (pod("node-agent", "agent-1"),),
}
LENIENT_CHECKS = replace(webhooks(), validating=webhooks(policy="Ignore").validating)
NOTHING: dict[str, Any] = {
    "webhooks": Webhooks(mutating=(), validating=()),
    "pods": (),
    "slices": (),
    "classes": (device_class("other"),),
}
INJECTED = webhooks(annotations={"cert-manager.io/inject-ca-from": "hami-system/x"})


def agents(**changes: Any) -> dict[str, AgentMetrics]:
    well: dict[str, Any] = {"registered": True, "problems": (), "unguarded": ()}
    return {"edge-1": AgentMetrics(**(well | changes))}


def served(**changes: float | None) -> dict[str, Any]:
    well: dict[str, Any] = {"ends_s": NOW_S + 86400, "authority_ends_s": NOW_S + 86400}
    return {"served": {"webhook-1": ServedCertificate(**(well | changes))}}


def runtime(text: str) -> tuple[dict[str, Any], ...]:
    info = {"kubeletVersion": "v1.36.1", "containerRuntimeVersion": text}
    return (node(nodeInfo=info),)


CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("cluster.version", {"version": OLD}, "wrong", "v1.33.5"),
    ("cluster.version", {"version": {"gitVersion": "v1.32.0-eks"}}, "wrong", "v1.32.0-eks"),
    ("cluster.version", {"version": V134}, "ok", "needs the feature gate"),
    ("cluster.version", {"version": {"gitVersion": "v1.37.0-rc.1"}}, "ok", "v1.37"),
    ("cluster.version", {"version": {"gitVersion": "main"}}, "unknown", "'main'"),
    ("cluster.version", {"version": {}}, "unknown", "''"),
    ("cluster.resource-api", {"resource_api": False}, "wrong", "not served"),
    ("cluster.gate", {"resource_api": False}, "skipped", ""),
    (
        "cluster.gate",
        {"canary": Canary(dropped=("spec.devices[0].x",))},
        "wrong",
        "DRAConsumableCapacity is off: the API server drops x",
    ),
    ("cluster.gate", {"canary": Canary(refusal="no (422)")}, "unknown", "no (422)"),
    ("cluster.scheduler-gate", {"schedulers": (OFF_FLAG,)}, "wrong", "kube-scheduler-a"),
    ("cluster.scheduler-gate", {"version": V134}, "wrong", "kube-scheduler-a"),
    ("cluster.scheduler-gate", {"version": V134, "schedulers": (ON_FLAG,)}, "ok", "is on"),
    ("cluster.scheduler-gate", {"version": V134, "claims": (healthy.claim(),)}, "ok", "given out"),
    ("cluster.scheduler-gate", {"version": V134, "schedulers": (CONFIG_FLAG,)}, "ok", ""),
    ("cluster.scheduler-gate", {"schedulers": ()}, "skipped", "not shown"),
    ("cluster.scheduler-gate", {"version": V134, "schedulers": ()}, "skipped", "not shown"),
    ("cluster.scheduler-gate", {"schedulers": Unseen("no right")}, "skipped", "not shown"),
    ("cluster.many-cards", {}, "skipped", ""),
    ("cluster.many-cards", {"version": V134}, "ok", ""),
    (
        "cluster.many-cards",
        {"version": V134, "slices": (healthy.slice_of(cards=2),)},
        "warning",
        "edge-1",
    ),
    ("nodes.labels", {"nodes": ({"metadata": {"name": "a"}},)}, "warning", "none of 1 node"),
    ("nodes.labels", {"nodes": ()}, "warning", "gpu=on"),
    ("nodes.labels", SITE, "warning", "has the labels gpu=on site=x"),
    ("nodes.labels", {**SITE, "nodes": (AT_SITE, ELSEWHERE)}, "ok", "1 node labelled gpu=on site"),
    ("parts.agents", {**SITE, "nodes": (AT_SITE, ELSEWHERE)}, "ok", "1 node"),
    ("parts.agents", {"nodes": (AT_SITE, ELSEWHERE)}, "wrong", "no agent on edge-2"),
    ("parts.slices", {**SITE, "nodes": (AT_SITE, ELSEWHERE)}, "ok", "1 card of 1 node"),
    ("nodes.conflicts", {"nodes": (node(capacity=PLUGIN),)}, "wrong", "edge-1 (a device plugin)"),
    ("nodes.conflicts", {"nodes": (node(metadata={"annotations": HAMI}),)}, "wrong", "an old HAMi"),
    ("nodes.conflicts", hami(silent_s=60), "wrong", "an old HAMi"),
    ("nodes.conflicts", hami(silent_s=301), "ok", "nobody else"),
    ("nodes.conflicts", hami(silent_s=301) | {"canary": Unseen("x")}, "wrong", "an old HAMi"),
    (
        "nodes.conflicts",
        {"nodes": ({"metadata": {"name": "b"}, "status": {"capacity": PLUGIN}},)},
        "skipped",
        "labelled",
    ),
    (
        "nodes.kubelets",
        {"nodes": (node(nodeInfo={"kubeletVersion": "v1.33.1"}),)},
        "wrong",
        "1.33.1",
    ),
    ("nodes.kubelets", {"nodes": ()}, "skipped", ""),
    ("nodes.runtimes", {"nodes": runtime("containerd://1.7.27")}, "warning", "1.7.27"),
    ("nodes.runtimes", {"nodes": runtime("containerd://1.6.20")}, "wrong", "1.6.20"),
    ("nodes.runtimes", {"nodes": runtime("docker://27.0.1")}, "wrong", "docker"),
    ("nodes.runtimes", {"nodes": runtime("cri-o://1.34.2")}, "ok", "cri-o"),
    ("nodes.runtimes", {"nodes": runtime("other")}, "warning", "other"),
    ("nodes.runtimes", {"nodes": ()}, "skipped", ""),
    (
        "cluster.extended-resource",
        {"classes": (device_class("whole", extendedResourceName="nvidia.com/gpu"),)},
        "wrong",
        "whole (nvidia.com/gpu)",
    ),
    ("cluster.extended-resource", stands_for("nvidia.com/gpumem"), "wrong", "nvidia.com/gpumem"),
    ("cluster.extended-resource", stands_for("nvidia.com/gpu-h100"), "ok", ""),
    ("cluster.extended-resource", stands_for("nvidia.com/gp"), "ok", ""),
    ("cluster.extended-resource", {**RENAMED, **stands_for("nvidia.com/gpu")}, "ok", ""),
    ("cluster.extended-resource", {**RENAMED, **stands_for("example.com/mib")}, "wrong", "/mib"),
    ("cluster.extended-resource", {**RENAMED, **stands_for("example.com/card")}, "wrong", "/card"),
    ("parts.releases", {"classes": (), "pods": ()}, "skipped", "Helm"),
    ("parts.releases", NOTHING, "wrong", "casaba is not installed"),
    ("parts.agents", NOTHING, "skipped", "casaba is not installed"),
    (
        "parts.releases",
        {
            "pods": (
                pod("webhook", "a"),
                pod("webhook", "b", release="two"),
            )
        },
        "wrong",
        "two in hami-system",
    ),
    ("parts.class", {"classes": ()}, "wrong", DRIVER_NAME),
    ("parts.class", {"classes": (device_class(expression="true"),)}, "wrong", "other drivers"),
    (
        "parts.class",
        {"classes": (device_class(expression='device.driver == "x"'),)},
        "wrong",
        "none of",
    ),
    ("parts.class", {"classes": (device_class(expression="no cel ("),)}, "wrong", "evaluated"),
    ("parts.agents", {"nodes": ()}, "skipped", ""),
    ("parts.agents", {"pods": (pod("webhook", "a"),)}, "wrong", "no agent on edge-1"),
    ("parts.agents", {"pods": (), "slices": ()}, "wrong", "no agent on edge-1"),
    ("parts.agents", {"pods": ()}, "skipped", "outside"),
    (
        "parts.agents",
        {"pods": (pod("node-agent", "a", ready=False),)},
        "wrong",
        "not ready on edge-1",
    ),
    ("parts.slices", {"slices": ()}, "wrong", "no slice of edge-1"),
    ("parts.slices", {"slices": (healthy.slice_of(cards=0),)}, "wrong", "no card in the slice"),
    ("parts.slices", {"nodes": ()}, "skipped", ""),
    ("parts.sharing", {"slices": (WHOLE,)}, "wrong", "edge-1 gpu-0"),
    ("parts.sharing", {"slices": ()}, "skipped", ""),
    (
        "parts.problems",
        {"events": (event("SliceFieldsDropped"),), "agents": {}},
        "wrong",
        "do this",
    ),
    ("parts.problems", {"events": (event("SliceFieldsDropped"),)}, "ok", "no agent"),
    ("parts.problems", {"agents": agents(problems=("DriverMissing",))}, "wrong", "casaba smi"),
    (
        "parts.problems",
        {"agents": agents(problems=("DriverMissing",)), "events": (event("DriverMissing"),)},
        "wrong",
        "edge-1: DriverMissing: a sentence; do this",
    ),
    (
        "parts.problems",
        {"agents": agents(problems=("DriverMissing",)), "events": Unseen("no right")},
        "wrong",
        "DriverMissing",
    ),
    ("parts.problems", {"agents": {}, "events": Unseen("no right")}, "unknown", "no right"),
    ("parts.problems", {"events": (event("DriverMissing"),), "agents": {}}, "wrong", "Driver"),
    ("parts.problems", {"events": (event("DriverMissing", age_s=7200),), "agents": {}}, "ok", ""),
    (
        "parts.problems",
        {"events": (event("DriverReady", "Normal", age_s=5), event("DriverMissing")), "agents": {}},
        "ok",
        "",
    ),
    (
        "parts.problems",
        {
            "events": (event("DriverReady", "Normal", about="other"), event("DriverMissing")),
            "agents": Unseen("no right"),
        },
        "wrong",
        "edge-1",
    ),
    ("parts.registration", {"agents": agents(registered=False)}, "wrong", "edge-1"),
    ("parts.registration", {"agents": {}}, "skipped", ""),
    ("parts.registration", {"agents": SILENT}, "unknown", "1 agent not asked (edge-1: no answer"),
    (
        "parts.registration",
        {"agents": SILENT, "metrics_restricted": True},
        "skipped",
        "(edge-1: no answer within 10 s): networkPolicy.metricsFrom lets only some ask",
    ),
    ("parts.guards", {"agents": SILENT, "metrics_restricted": True}, "skipped", "metricsFrom"),
    ("parts.guards", {"metrics_restricted": True}, "ok", "every process"),
    (
        "parts.guards",
        {
            "agents": SILENT
            | {
                "edge-2": AgentMetrics(
                    registered=True, problems=(), unguarded=("team/tenant main",)
                )
            },
            "metrics_restricted": True,
        },
        "wrong",
        "team/tenant main",
    ),
    (
        "parts.guards",
        {"agents": SILENT | {"edge-2": Unseen("no right")}, "metrics_restricted": True},
        "unknown",
        "2 agents not asked",
    ),
    (
        "parts.guards",
        {"agents": agents(unguarded=("team/tenant main",))},
        "wrong",
        "team/tenant main",
    ),
    ("parts.guards", {"agents": {"edge-1": Unseen("no right")}}, "unknown", "no right"),
    ("webhook.configuration", NO_WEBHOOK, "skipped", ""),
    ("webhook.configuration", {"webhooks": webhooks(policy="Ignore")}, "warning", "Ignore"),
    ("webhook.configuration", {"webhooks": LENIENT_CHECKS}, "ok", "2 webhooks"),
    (
        "webhook.configuration",
        {"webhooks": replace(webhooks(), mutating=())},
        "warning",
        "Mutating",
    ),
    (
        "webhook.configuration",
        {"webhooks": Webhooks(mutating=(), validating=())},
        "warning",
        "hami-dra-webhook",
    ),
    ("webhook.replicas", NO_WEBHOOK, "skipped", ""),
    ("webhook.replicas", {"pods": (pod("webhook", "a", ready=False),)}, "wrong", "of 1"),
    ("webhook.replicas", {"pods": ()}, "wrong", "of 0"),
    (
        "webhook.replicas",
        {"pods": (pod("webhook", "a", ready=False), pod("webhook", "b"))},
        "warning",
        "1 of 2 replicas",
    ),
    ("webhook.authority", NO_WEBHOOK, "skipped", ""),
    ("webhook.authority", {"webhooks": webhooks(ca="")}, "wrong", "no caBundle"),
    ("webhook.authority", {"webhooks": webhooks(ca="Z2FyYmFnZQ==")}, "wrong", "no certificate"),
    ("webhook.authority", {"webhooks": webhooks(ca="=")}, "wrong", "no certificate"),
    (
        "webhook.authority",
        {"webhooks": webhooks(ca=healthy.bundle(ends_in_s=-60))},
        "wrong",
        "expired",
    ),
    (
        "webhook.authority",
        {"webhooks": webhooks(ca=healthy.bundle(ends_in_s=3600))},
        "warning",
        "ends",
    ),
    ("webhook.authority", served(ends_s=NOW_S - 60), "wrong", "webhook-1 serves has expired"),
    ("webhook.authority", served(ends_s=0.0), "wrong", "webhook-1 has no certificate"),
    ("webhook.authority", served(authority_ends_s=NOW_S), "wrong", "authority of webhook-1 has"),
    ("webhook.authority", served(authority_ends_s=None), "ok", "trusted until"),
    ("webhook.authority", {"served": {"webhook-1": Unseen("no right")}}, "ok", "trusted until"),
    ("webhook.cert-manager", {"webhooks": INJECTED}, "wrong", "not there"),
    ("webhook.cert-manager", {"webhooks": INJECTED, "cert_manager": True}, "ok", "cert-manager"),
    ("webhook.trial", tried(), "wrong", "stored as it is"),
    ("webhook.trial", NO_WEBHOOK | tried(), "skipped", ""),
    ("webhook.trial", {"webhooks": Unseen("no right")} | tried(), "unknown", "no right"),
    (
        "webhook.trial",
        {"webhooks": replace(webhooks(), mutating=())} | tried(),
        "skipped",
        "no MutatingWebhookConfiguration hami-dra-webhook, so classic pods are not converted",
    ),
    ("webhook.trial", tried("kube-system"), "skipped", "--trial-namespace"),
    (
        "webhook.trial",
        {"webhooks": webhooks(left_alone=("default",))} | tried(),
        "skipped",
        "leaves the namespace default alone",
    ),
    ("webhook.trial", {"webhooks": webhooks(left_alone=("default",))}, "ok", "got a claim"),
    ("webhook.trial", tried(webhook="ignore"), "skipped", "leaves the namespace default alone"),
    ("webhook.trial", tried(webhook="look"), "wrong", "stored as it is"),
    (
        "webhook.trial",
        {"trial": Trial(refusal=NOT_CALLED + "x509: certificate has expired or is not yet valid")},
        "wrong",
        "has expired",
    ),
    (
        "webhook.trial",
        {"trial": Trial(refusal=NOT_CALLED + "x509: certificate signed by unknown authority")},
        "wrong",
        "unknown authority",
    ),
    (
        "webhook.trial",
        {"trial": Trial(refusal=NOT_CALLED + "connection refused")},
        "wrong",
        "refused",
    ),
    (
        "webhook.trial",
        {"trial": Trial(refusal='admission webhook "mutate.hami.io" denied the request: no card')},
        "ok",
        "no card",
    ),
    ("webhook.trial", {"trial": Trial(refusal="exceeded quota: pods")}, "unknown", "quota"),
    ("webhook.old", {"webhooks": OLD_HAMI}, "wrong", "hami-webhook"),
    ("controller.leader", {"lease": None}, "wrong", "Lease"),
    ("controller.leader", {"lease": None, "pods": ()}, "skipped", ""),
    ("controller.leader", {"lease": healthy.lease("c", age_s=300)}, "wrong", "300 s ago"),
    ("controller.leader", {"lease": healthy.lease("c", holder="")}, "wrong", "nobody holds"),
    ("controller.leader", {"lease": {"metadata": {}, "spec": {}}}, "wrong", "nobody holds"),
    (
        "cluster.clocks",
        {"canary": Canary(local_before_s=NOW_S, local_after_s=NOW_S, server_s=NOW_S - 100)},
        "wrong",
        "99 s",
    ),
    (
        "cluster.clocks",
        {"canary": Canary(local_before_s=NOW_S, local_after_s=NOW_S, server_s=NOW_S + 100)},
        "wrong",
        "100 s",
    ),
    (
        "cluster.clocks",
        {"node_leases": (healthy.lease("edge-1", age_s=-60),)},
        "wrong",
        "edge-1 (60 s)",
    ),
    ("cluster.clocks", {"canary": Canary()}, "skipped", ""),
]
