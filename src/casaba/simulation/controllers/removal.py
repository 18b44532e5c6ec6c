"""How controllers end a pod."""

from typing import Any

from casaba.kube import KubeClient, NotFound
from casaba.simulation.workloads.objects import PODS, Pod
from casaba.simulation.workloads.times import utc_now
from casaba.simulation.workloads.writing import patch_pod_status


async def mark_failed_and_delete(
    client: KubeClient, pod: Pod, condition: dict[str, Any] | None = None
) -> None:
    """At once: no kubelet is asked. The phase first, so that owners see it."""
    meta = pod.metadata
    try:
        if not pod.is_finished:
            await _write_status(client, pod, {"phase": "Failed"}, condition)
        await client.delete(
            PODS, meta.name, namespace=meta.namespace, uid=meta.uid, grace_period_s=0
        )
    except NotFound:
        return


async def evict(client: KubeClient, pod: Pod, condition: dict[str, Any]) -> None:
    """As the pod's own grace period allows."""
    meta = pod.metadata
    try:
        await _write_status(client, pod, {}, condition)
        await client.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid)
    except NotFound:
        return


async def _write_status(
    client: KubeClient, pod: Pod, status: dict[str, Any], condition: dict[str, Any] | None
) -> None:
    if condition is not None:
        status = {**status, "conditions": [{**condition, "lastTransitionTime": utc_now()}]}
    await patch_pod_status(client, pod, status)
