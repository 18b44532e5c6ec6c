"""Which containers of which pods may use a request of a claim."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from casaba.wire.kubernetes import Container, Pod, ResourceClaim

FindPod = Callable[[str, str], Pod | None]
"""A pod by namespace and name."""

_ENDED = ("Succeeded", "Failed")
"""Phases of pods that ask for nothing any more."""


@dataclass(frozen=True, kw_only=True)
class User:
    """A pod that may use a share."""

    pod: str
    containers: tuple[str, ...] = ()
    """Indexes of its containers that may: `0`, or `init-0` of an init container or sidecar."""


def users_of(claim: ResourceClaim, request: str, find_pod: FindPod) -> tuple[User, ...]:
    """The pods that the claim is reserved for, with the containers that use the request."""
    main = request.partition("/")[0]
    users = []
    for consumer in claim.status.reserved_for:
        if consumer.resource != "pods" or consumer.api_group:
            continue
        pod = find_pod(claim.metadata.namespace, consumer.name)
        known = pod is not None and pod.metadata.uid == consumer.uid
        containers = tuple(_containers(pod, claim.metadata.name, main)) if pod and known else ()
        users.append(User(pod=consumer.name, containers=containers))
    return tuple(users)


def _containers(pod: Pod, claim: str, request: str) -> Iterator[str]:
    entries = _entries(pod, claim)
    for index, container in enumerate(pod.spec.init_containers):
        if _uses(container, entries, request):
            yield f"init-{index}"
    for index, container in enumerate(pod.spec.containers or ()):
        if _uses(container, entries, request):
            yield str(index)


def claims_in_demand(pods: Iterable[Pod]) -> frozenset[tuple[str, str]]:
    """Namespaces and names of the claims that pods ask for which have not ended."""
    return frozenset(
        (pod.metadata.namespace, claim)
        for pod in pods
        if pod.spec.resource_claims and pod.status.phase not in _ENDED
        for _, claim in _named_claims(pod)
    )


def _entries(pod: Pod, claim: str) -> frozenset[str]:
    """Under which names the pod speaks of the claim."""
    return frozenset(entry for entry, name in _named_claims(pod) if name == claim)


def _named_claims(pod: Pod) -> Iterator[tuple[str, str]]:
    """The pod's own name and the claim's, of each; a template's claim has one once it is made."""
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or made.get(entry.name)
        if name:
            yield entry.name, name


def _uses(container: Container, entries: frozenset[str], request: str) -> bool:
    return any(
        use.name in entries and use.request in ("", request) for use in container.resources.claims
    )
