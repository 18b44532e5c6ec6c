"""Which claim a pod means, and whether it may have it (k8s.io/dynamic-resource-allocation).

A pod names its claim, or has it made from a template; then the status of the pod says the name,
and the claim says whose it is.
"""

from casaba.errors import InvalidInput
from casaba.simulation.workloads.objects import Pod
from casaba.wire.kubernetes import ObjectMeta, OwnerReference, PodResourceClaim, ResourceClaim

RESERVED_FOR_MAX = 256
"""Users of one claim (k8s.io/api, ResourceClaimReservedForMaxSize)."""

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps an allocated claim until its devices are given back."""

POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
"""Entry of the pod for which a claim was made from a template."""


class ClaimNotThere(InvalidInput):
    """A pod's claim that can't be used (yet), in the words of Kubernetes."""


class ClaimNotMade(ClaimNotThere):
    """… because no controller has made it from its template yet."""


def claim_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    """Name of the claim of one entry; None if none is needed.

    Raises:
        ClaimNotThere: it has not been made from its template yet.
    """
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    if entry.resource_claim_template_name is None:
        raise ClaimNotThere(
            f'pod "{pod.metadata.namespace}/{pod.metadata.name}", '
            f"spec.resourceClaim {entry.name}: none of the supported fields are set"
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name
    raise ClaimNotMade(
        f'pod "{pod.metadata.namespace}/{pod.metadata.name}": ResourceClaim not created yet'
    )


def check_owner(pod: Pod, claim: ResourceClaim) -> None:
    """
    Raises:
        ClaimNotThere: the claim of a template was made for another pod.
    """
    owner = controller_of(claim.metadata)
    if owner is None or owner.uid != pod.metadata.uid:
        raise ClaimNotThere(
            f"ResourceClaim {claim.metadata.namespace}/{claim.metadata.name} was not created "
            f"for pod {pod.metadata.namespace}/{pod.metadata.name} (pod is not owner)"
        )


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The one owner that manages an object."""
    return next((owner for owner in metadata.owner_references if owner.controller), None)


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the pod may use the claim now."""
    return any(user.uid == pod.metadata.uid for user in claim.status.reserved_for)


def can_be_reserved(claim: ResourceClaim) -> bool:
    """Whether one more user fits."""
    return len(claim.status.reserved_for) < RESERVED_FOR_MAX


def claim_names(pod: Pod) -> set[str]:
    """The names of all claims of a pod, as far as they have been made."""
    names: set[str] = set()
    for entry in pod.spec.resource_claims:
        try:
            name = claim_name(pod, entry)
        except ClaimNotThere:
            continue
        if name is not None:
            names.add(name)
    return names
