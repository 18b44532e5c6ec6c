"""Asks agents for their metrics through the API server, as their pods can't be reached directly."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from casaba.errors import HostError
from casaba.kube import PODS, KubeClient
from casaba.policy.diagnosis import Unseen
from casaba.policy.diagnosis.cluster.observations import AgentMetrics
from casaba.services.doctor.looking import seen
from casaba.settings.doctor import DoctorSettings

_AT_ONCE = 8
_COMPONENT = "app.kubernetes.io/component"


async def ask_agents(
    client: KubeClient, settings: DoctorSettings, pods: tuple[Any, ...] | Unseen
) -> Mapping[str, AgentMetrics | Unseen] | Unseen:
    """By node; of every running agent."""
    if isinstance(pods, Unseen):
        return pods
    turns = asyncio.Semaphore(_AT_ONCE)

    async def ask(pod: dict[str, Any]) -> AgentMetrics | Unseen:
        async with turns:
            return await seen(_ask(client, settings, pod), settings.look_s)

    async with asyncio.TaskGroup() as group:
        asked = {
            str(pod["spec"]["nodeName"]): group.create_task(ask(pod))
            for pod in pods
            if _is_running_agent(pod, settings.node)
        }
    return {node: task.result() for node, task in asked.items()}


def _is_running_agent(pod: dict[str, Any], node: str | None) -> bool:
    labels = pod["metadata"].get("labels") or {}
    on = (pod.get("spec") or {}).get("nodeName")
    phase = (pod.get("status") or {}).get("phase")
    return (
        labels.get(_COMPONENT) == "node-agent"
        and phase == "Running"
        and bool(on)
        and node in (None, on)
    )


async def _ask(client: KubeClient, settings: DoctorSettings, pod: dict[str, Any]) -> AgentMetrics:
    metadata = pod["metadata"]
    content = await client.read(
        PODS,
        f"{metadata['name']}:{_metrics_port(pod) or settings.metrics_port}",
        namespace=metadata["namespace"],
        subresource="proxy/metrics",
    )
    try:
        return read_metrics(text_string_to_metric_families(content.decode()))
    except ValueError as error:
        raise HostError(f"the agent's metrics are not understood: {error}") from error


def _metrics_port(pod: dict[str, Any]) -> int | None:
    """As its container names it, since the chart lets people choose."""
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == "metrics":
                return int(port["containerPort"])
    return None


def read_metrics(families: Iterable[Metric]) -> AgentMetrics:
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
