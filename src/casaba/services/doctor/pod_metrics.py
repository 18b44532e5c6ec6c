"""Asks pods for their metrics through the API server, as they can't be reached directly."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from casaba.errors import HostError
from casaba.kube import PODS, KubeClient
from casaba.policy.diagnosis import Unanswered, Unseen
from casaba.services.doctor.looking import seen

Pod = dict[str, Any]
T = TypeVar("T")

_AT_ONCE = 8
_ENOUGH = 3 * _AT_ONCE
"""When so many pods have given no answer, no other is asked: that takes 3 times as long as one."""

_COMPONENT = "app.kubernetes.io/component"


def running(pods: Iterable[Pod], component: str, node: str | None = None) -> list[Pod]:
    """The pods of a part of casaba that run, on one node or on all."""
    return [
        pod
        for pod in pods
        if (pod["metadata"].get("labels") or {}).get(_COMPONENT) == component
        and (pod.get("status") or {}).get("phase") == "Running"
        and (on := (pod.get("spec") or {}).get("nodeName"))
        and node in (None, on)
    ]


async def ask_pods(
    client: KubeClient,
    pods: Iterable[Pod],
    read: Callable[[Iterable[Metric]], T],
    *,
    port: int,
    limit_s: float,
) -> list[tuple[Pod, T | Unseen]]:
    """What `read` makes of each pod's metrics, some pods at a time.

    `read` raises ValueError for what it can't use; `port` is asked where a pod names none. Each has
    `limit_s` to answer; where many do not, the others are not asked any more.
    """
    turns, silent = asyncio.Semaphore(_AT_ONCE), 0

    async def ask(pod: Pod) -> tuple[Pod, T | Unseen]:
        nonlocal silent
        async with turns:
            if silent >= _ENOUGH:
                return pod, Unanswered(f"not asked, as {silent} others gave no answer")
            told = await seen(_ask(client, pod, read, port), limit_s)
            silent += isinstance(told, Unanswered)
            return pod, told

    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(ask(pod)) for pod in pods]
    return [task.result() for task in asked]


async def _ask(client: KubeClient, pod: Pod, read: Callable[[Iterable[Metric]], T], port: int) -> T:
    metadata: Mapping[str, Any] = pod["metadata"]
    content = await client.read(
        PODS,
        f"{metadata['name']}:{_metrics_port(pod) or port}",
        namespace=metadata["namespace"],
        subresource="proxy/metrics",
    )
    try:
        return read(text_string_to_metric_families(content.decode()))
    except ValueError as error:
        raise HostError(f"its metrics are not understood: {error}") from error


def _metrics_port(pod: Pod) -> int | None:
    """As its container names it, since the chart lets people choose."""
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == "metrics":
                return int(port["containerPort"])
    return None
