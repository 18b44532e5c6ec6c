"""Writes to pods and claims that scheduler and controllers have in common.

All raise KubeError; a Conflict means that the object has changed, or is another one by now.
"""

from typing import Any

from casaba.kube import RESOURCE_CLAIMS, Conflict, KubeClient, NotFound
from casaba.simulation.workloads.objects import PODS, Pod
from casaba.wire.kubernetes import ResourceClaim

OVERTAKEN = (Conflict, NotFound)
"""Errors of a write that are only news: the object has changed since it was read, or is gone."""


def user_of_claim(pod: Pod) -> dict[str, str]:
    """The pod as an entry of `reservedFor`."""
    return {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}


async def patch_claim(
    client: KubeClient, claim: ResourceClaim, patch: dict[str, Any], subresource: str | None = None
) -> ResourceClaim:
    """Merge a patch into a claim, if nobody else has changed it since it was read."""
    meta = claim.metadata
    return await client.patch(
        RESOURCE_CLAIMS,
        meta.name,
        patch,
        namespace=meta.namespace,
        subresource=subresource,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


async def patch_pod_status(client: KubeClient, pod: Pod, status: dict[str, Any]) -> None:
    """Merge into a pod's status, conditions by their type, whatever others wrote meanwhile."""
    await client.patch(
        PODS,
        pod.metadata.name,
        {"status": status},
        namespace=pod.metadata.namespace,
        subresource="status",
        strategic=True,
        uid=pod.metadata.uid,
    )
