"""What casaba's own parts tell of themselves in their metrics."""

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.metrics_core import Metric

from casaba.kube import KubeClient
from casaba.policy.diagnosis import Unseen
from casaba.policy.diagnosis.cluster.observations import AgentMetrics, ServedCertificate
from casaba.services.doctor.pod_metrics import ask_pods, running
from casaba.settings.doctor import DoctorSettings


async def ask_agents(
    client: KubeClient, settings: DoctorSettings, pods: tuple[Any, ...] | Unseen
) -> Mapping[str, AgentMetrics | Unseen] | Unseen:
    """By node; of every running agent."""
    if isinstance(pods, Unseen):
        return pods
    agents = running(pods, "node-agent", settings.node)
    asked = await ask_pods(
        client, agents, agent_metrics, port=settings.metrics_port, limit_s=settings.look_s
    )
    return {str(pod["spec"]["nodeName"]): told for pod, told in asked}


async def ask_webhooks(
    client: KubeClient, settings: DoctorSettings, pods: tuple[Any, ...] | Unseen
) -> Mapping[str, ServedCertificate | Unseen] | Unseen:
    """By pod; of every running replica of the webhook."""
    if isinstance(pods, Unseen):
        return pods
    asked = await ask_pods(
        client,
        running(pods, "webhook"),
        served_certificate,
        port=settings.webhook_metrics_port,
        limit_s=settings.look_s,
    )
    return {str(pod["metadata"]["name"]): told for pod, told in asked}


def agent_metrics(families: Iterable[Metric]) -> AgentMetrics:
    """What matters of an agent's metrics; raises ValueError for what are none."""
    registered, problems, unguarded = False, [], []
    for family in families:
        for sample in family.samples:
            labels = sample.labels
            if sample.name == "casaba_kubelet_registered":
                registered = sample.value == 1
            elif sample.name == "casaba_agent_problem" and sample.value:
                problems.append(labels.get("reason", ""))
            elif sample.name == "casaba_guard_alive" and sample.value == 0:
                unguarded.append(_container(labels))
    return AgentMetrics(registered=registered, problems=tuple(problems), unguarded=tuple(unguarded))


def _container(labels: Mapping[str, str]) -> str:
    return f"{labels.get('namespace')}/{labels.get('pod')} {labels.get('container')}"


def served_certificate(families: Iterable[Metric]) -> ServedCertificate:
    """The end of what a webhook serves; raises ValueError for what are no metrics of one."""
    values = {sample.name: sample.value for family in families for sample in family.samples}
    ends = "casaba_webhook_certificate_expiry_timestamp_seconds"
    if ends not in values:
        raise ValueError(f"there is no {ends}")
    authority = values.get("casaba_webhook_certificate_authority_expiry_timestamp_seconds")
    return ServedCertificate(ends_s=values[ends], authority_ends_s=authority or None)
