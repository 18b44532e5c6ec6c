"""What becomes of a claim when its users leave (kube-controller-manager, resourceclaim-controller).

Users that are no pods are kept: a node's agent may hold a claim as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from casaba.simulation.workloads.claim_names import FINALIZER, controller_of
from casaba.simulation.workloads.objects import Pod
from casaba.wire.kubernetes import OwnerReference, ResourceClaim, ResourceClaimConsumer


@dataclass(frozen=True, kw_only=True)
class Release:
    """Writes in their order; nothing to do if all are false."""

    keep_users: tuple[ResourceClaimConsumer, ...] | None = None
    """The users that remain; None if they are right as they are."""
    deallocate: bool = False
    remove_finalizer: bool = False
    delete: bool = False
    """Whether it was made for a pod that will not run (any more)."""


def pod_users(claim: ResourceClaim) -> tuple[ResourceClaimConsumer, ...]:
    """The users that are pods."""
    return tuple(user for user in claim.status.reserved_for if is_pod(user))


def is_pod(user: ResourceClaimConsumer) -> bool:
    """Whether a user of a claim is a pod."""
    return not user.api_group and user.resource == "pods"


def plan_release(
    claim: ResourceClaim, pods: Mapping[str, Pod | None], owner: Pod | None
) -> Release:
    """The plan; `pods` has the pod of each pod user by UID, None where it is gone.

    `owner` is the pod of the name that the claim was made for, if there is one.
    """
    users = claim.status.reserved_for
    remaining = tuple(user for user in users if not is_pod(user) or _may_run(pods[user.uid]))
    protected = FINALIZER in claim.metadata.finalizers
    left = len(remaining) < len(users)
    leaves = claim.metadata.deletion_timestamp is not None and not remaining
    unused = (left or leaves) and not remaining and protected
    return Release(
        keep_users=remaining if left else None,
        deallocate=unused and claim.status.allocation is not None,
        remove_finalizer=unused,
        delete=not remaining and _is_for_nobody(claim, owner),
    )


def is_done(pod: Pod) -> bool:
    """Whether a pod needs its claims no more."""
    unscheduled = pod.metadata.deletion_timestamp is not None and not pod.spec.node_name
    return pod.is_finished or unscheduled


def pod_owner(claim: ResourceClaim) -> OwnerReference | None:
    """The pod that a claim was made for."""
    owner = controller_of(claim.metadata)
    return owner if owner and (owner.api_version, owner.kind) == ("v1", "Pod") else None


def _may_run(pod: Pod | None) -> bool:
    return pod is not None and not is_done(pod)


def _is_for_nobody(claim: ResourceClaim, owner: Pod | None) -> bool:
    """A pod that is not known is left to the garbage collector: it may only be new."""
    reference = pod_owner(claim)
    if reference is None or owner is None or claim.metadata.deletion_timestamp is not None:
        return False
    return owner.metadata.uid != reference.uid or is_done(owner)
