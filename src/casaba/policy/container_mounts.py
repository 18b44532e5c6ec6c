"""Which requests of a claim a container uses, by what it has mounted.

The kubelet names pods and not their UIDs, mounts the other way round; the claim's consumers tell
both. That matters only where pods share a claim.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from casaba.model.claim import AllocatedClaim
from casaba.model.gpu_process import ContainerMounts
from casaba.model.ids import ClaimUid
from casaba.model.pod_use import PodInUse
from casaba.model.slice_use import ContainerName

PodNames = Mapping[str, str]
"""Names of pods by UID, as far as known."""

_Requests = frozenset[str]


@dataclass(frozen=True)
class KnownMounts:
    """The mounts of containers that were seen, and the names of their pods."""

    by_container: Mapping[tuple[str, str], Mapping[str, _Requests]] = field(default_factory=dict)
    """Requests by pod UID, by claim UID and container name."""
    pod_names: PodNames = field(default_factory=dict)

    def requests(self, claim: ClaimUid, user: ContainerName) -> _Requests | None:
        """Those that a container uses; None while that is not known.

        Where its pod is one of several of which none is known by name, those of all of them.
        """
        told = self.by_container.get((claim, user.container), {})
        own = [some for uid, some in told.items() if self.pod_names.get(uid) == user.pod]
        nobodys = [some for uid, some in told.items() if uid not in self.pod_names]
        found = own or nobodys
        return frozenset().union(*found) if found else None


def known_mounts(mounts: Iterable[ContainerMounts], pod_names: PodNames) -> KnownMounts:
    """What was seen, in order."""
    found: dict[tuple[str, str], dict[str, _Requests]] = {}
    for one in mounts:
        for claim, request in one.budgets:
            pods = found.setdefault((claim, one.container), {})
            pods[one.pod_uid] = pods.get(one.pod_uid, frozenset()) | {request}
    return KnownMounts(found, pod_names)


def claims_to_ask(
    claims: Iterable[AllocatedClaim], pods: Iterable[PodInUse], known: KnownMounts
) -> tuple[AllocatedClaim, ...]:
    """Claims that several pods share and of which some pod was seen whose name is not known."""
    users: dict[tuple[str, str], set[str]] = {}
    for pod in pods:
        for _, uses in pod.containers:
            for one in uses:
                users.setdefault((one.namespace, one.name), set()).add(pod.name)
    nameless = {
        claim
        for (claim, _), pod_uids in known.by_container.items()
        if not pod_uids.keys() <= known.pod_names.keys()
    }
    return tuple(
        claim
        for claim in claims
        if claim.uid in nameless and len(users.get((claim.namespace, claim.name), ())) > 1
    )
