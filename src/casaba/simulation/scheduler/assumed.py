"""Claims as they are after our own writes, before the watch has told of them.

Source: the real scheduler's assume cache and its claims in flight (plugin DynamicResources).
"""

from collections.abc import Iterator, Mapping

from casaba.kube import ObjectKey
from casaba.wire.kubernetes import ResourceClaim


class AssumedClaims(Mapping[ObjectKey, ResourceClaim]):
    """The watched claims, overlaid by newer ones that answers to our writes have shown."""

    def __init__(self, watched: Mapping[ObjectKey, ResourceClaim]) -> None:
        self._watched = watched
        self._newer: dict[ObjectKey, ResourceClaim] = {}

    def __getitem__(self, key: ObjectKey) -> ResourceClaim:
        watched = self._watched[key]
        newer = self._newer.get(key)
        return newer if newer and _is_newer(newer, watched) else watched

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self._watched)

    def __len__(self) -> int:
        return len(self._watched)

    def assume(self, claim: ResourceClaim) -> None:
        """An answer of the server showed the claim like this."""
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        if key not in self._watched:
            return  # the watch has told that it is gone
        known = self._newer.get(key)
        if known is None or _is_newer(claim, known) or known.metadata.uid != claim.metadata.uid:
            self._newer[key] = claim

    def watched(self, key: ObjectKey) -> None:
        """The watch has told of the claim; what it has caught up with is forgotten."""
        newer = self._newer.get(key)
        watched = self._watched.get(key)
        if newer and (watched is None or not _is_newer(newer, watched)):
            del self._newer[key]


def _is_newer(one: ResourceClaim, other: ResourceClaim) -> bool:
    """Versions are compared as numbers (KEP-5504); another UID is another claim."""
    if one.metadata.uid != other.metadata.uid:
        return False
    try:
        return int(one.metadata.resource_version) > int(other.metadata.resource_version)
    except ValueError:
        return False
