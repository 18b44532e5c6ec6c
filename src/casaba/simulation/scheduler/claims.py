"""A pod's claims before any node is looked at (plugin DynamicResources, PreEnqueue, PreFilter)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from casaba.kube import ObjectKey
from casaba.simulation.workloads.claim_names import (
    ClaimNotThere,
    can_be_reserved,
    check_owner,
    claim_name,
    is_reserved_for,
)
from casaba.simulation.workloads.objects import Pod
from casaba.wire.kubernetes import ResourceClaim


@dataclass(frozen=True, kw_only=True)
class PodClaims:
    """The claims of a pod, in the order of its spec."""

    allocated: tuple[ResourceClaim, ...] = ()
    """They only restrict the nodes."""
    to_allocate: tuple[ResourceClaim, ...] = ()


class ClaimRefused(Exception):
    """A claim that no node can help; the message is the real scheduler's."""


def pod_claims(pod: Pod, claims: Mapping[ObjectKey, ResourceClaim]) -> tuple[ResourceClaim, ...]:
    """
    Raises:
        ClaimNotThere: one of them is not there (yet), leaves, or is another pod's.
    """
    return tuple(
        _found(pod, name, claims, made_for_pod=entry.resource_claim_name is None)
        for entry in pod.spec.resource_claims
        if (name := claim_name(pod, entry)) is not None
    )


def sorted_out(
    pod: Pod,
    claims: Collection[ResourceClaim],
    *,
    in_flight: Collection[str],
    classes: Collection[str],
) -> PodClaims:
    """What must be allocated; `in_flight` are the UIDs of claims that are just being allocated.

    Raises:
        ClaimRefused: the pod has to wait, or a class is missing.
    """
    for claim in claims:
        if claim.status.allocation is None:
            _check_unallocated(claim, in_flight, classes)
        elif not can_be_reserved(claim) and not is_reserved_for(claim, pod):
            raise ClaimRefused("resourceclaim in use")
    return PodClaims(
        allocated=tuple(claim for claim in claims if claim.status.allocation is not None),
        to_allocate=tuple(claim for claim in claims if claim.status.allocation is None),
    )


def _found(
    pod: Pod, name: str, claims: Mapping[ObjectKey, ResourceClaim], *, made_for_pod: bool
) -> ResourceClaim:
    claim = claims.get(ObjectKey(pod.metadata.namespace, name))
    if claim is None:
        raise ClaimNotThere(f'resourceclaim "{name}" not found')
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimNotThere(f'resourceclaim "{name}" is being deleted')
    if made_for_pod:
        check_owner(pod, claim)
    return claim


def _check_unallocated(
    claim: ResourceClaim, in_flight: Collection[str], classes: Collection[str]
) -> None:
    if claim.metadata.uid in in_flight:
        raise ClaimRefused(
            f"resource claim {claim.metadata.namespace}/{claim.metadata.name} "
            "is in the process of being allocated"
        )
    for request, class_name in _class_names(claim):
        if class_name not in classes:
            raise ClaimRefused(f"request {request}: device class {class_name} does not exist")


def _class_names(claim: ResourceClaim) -> list[tuple[str, str]]:
    """Request (with its alternative) and class, in the order of the claim."""
    found: list[tuple[str, str]] = []
    for request in claim.spec.devices.requests or ():
        if request.exactly:
            found.append((request.name, request.exactly.device_class_name))
        found += [
            (f"{request.name}/{alternative.name}", alternative.device_class_name)
            for alternative in request.first_available
        ]
    return found
