"""Claims that a pod's templates call for (kube-controller-manager, resourceclaim-controller).

A claim is made once for each pod and entry. It is found again by owner and annotation, should its
name not have reached the pod's status.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from casaba.kube import ObjectKey
from casaba.simulation.workloads.claim_names import (
    POD_CLAIM_ANNOTATION,
    ClaimNotThere,
    check_owner,
    claim_name,
    controller_of,
)
from casaba.simulation.workloads.objects import Pod
from casaba.wire.kubernetes import PodResourceClaim, ResourceClaim

GENERATED_NAME_MAX_CHARS = 57
"""Of pod and entry with their hyphens; five random characters follow, 63 may be in all."""

Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class MissingClaim:
    """A claim that has to be made."""

    entry: str
    template: str


def missing_claims(
    pod: Pod, claims: Mapping[ObjectKey, ResourceClaim], known: Mapping[str, str]
) -> tuple[MissingClaim, ...]:
    """`known` are names by entry that the pod's status need not tell yet."""
    return tuple(
        MissingClaim(entry=entry.name, template=entry.resource_claim_template_name)
        for entry in pod.spec.resource_claims
        if entry.resource_claim_template_name is not None
        and entry.name not in known
        and _is_missing(pod, entry, claims)
    )


def made_before(pod: Pod, claims: Iterable[ResourceClaim]) -> dict[str, str]:
    """Names by entry of the claims that were made for this pod."""
    found: dict[str, str] = {}
    for claim in claims:
        owner = controller_of(claim.metadata)
        entry = claim.metadata.annotations.get(POD_CLAIM_ANNOTATION)
        if entry and owner and owner.uid == pod.metadata.uid:
            found.setdefault(entry, claim.metadata.name)
    return found


def new_claim(pod: Pod, entry: str, template: Object) -> Object:
    """The claim of a pod's entry, from a ResourceClaimTemplate as it was read."""
    spec = template.get("spec", {})
    metadata = spec.get("metadata", {})
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.metadata.name,
        "uid": pod.metadata.uid,
        "controller": True,
    }
    return {
        "metadata": {
            "generateName": generated_name(pod.metadata.name, entry),
            "ownerReferences": [owner],
            "annotations": {**metadata.get("annotations", {}), POD_CLAIM_ANNOTATION: entry},
            "labels": metadata.get("labels", {}),
        },
        "spec": spec.get("spec", {}),
    }


def generated_name(pod: str, entry: str) -> str:
    """Both names, each shortened in proportion when together they are too long."""
    name = f"{pod}-{entry}-"
    if len(name) <= GENERATED_NAME_MAX_CHARS:
        return name
    pod_chars = len(pod) * GENERATED_NAME_MAX_CHARS // len(name)
    short = f"{pod[:pod_chars]}-"
    return short + entry[: len(entry) * GENERATED_NAME_MAX_CHARS // len(name)]


def status_patch(pod: Pod, names: Mapping[str, str]) -> Object:
    """What the pod's status has to say; all names, for server-side apply drops those left out."""
    entries = [
        {"name": entry, "resourceClaimName": name}
        for entry, name in sorted({**_told_names(pod), **names}.items())
        if name is not None
    ]
    return {
        "metadata": {"name": pod.metadata.name, "uid": pod.metadata.uid},
        "status": {"resourceClaimStatuses": entries},
    }


def is_told(pod: Pod, names: Mapping[str, str]) -> bool:
    """Whether the pod's status has these names already."""
    told = _told_names(pod)
    return all(told.get(entry) == name for entry, name in names.items())


def _told_names(pod: Pod) -> dict[str, str | None]:
    return {entry.name: entry.resource_claim_name for entry in pod.status.resource_claim_statuses}


def _is_missing(
    pod: Pod, entry: PodResourceClaim, claims: Mapping[ObjectKey, ResourceClaim]
) -> bool:
    try:
        name = claim_name(pod, entry)
        if name is None:
            return False
        claim = claims.get(ObjectKey(pod.metadata.namespace, name))
        if claim is not None:
            check_owner(pod, claim)
    except ClaimNotThere:
        return True
    return claim is None
