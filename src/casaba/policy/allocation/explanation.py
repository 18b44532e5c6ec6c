"""Why a search found nothing, told by what it met.

The scheduler says only that it can't; here every request that never got all its devices tells
what stood in the way of each device, devices with the same obstacle together.
"""

from collections.abc import Iterable

from casaba.policy.allocation.nodes import CandidateNode
from casaba.policy.allocation.outcome import DeviceId, Reason
from casaba.policy.allocation.pools import Pool
from casaba.policy.allocation.requests import Wanted, claim_name
from casaba.wire.kubernetes import ResourceClaim

_NAMED_DEVICES = 3
"""More devices with one obstacle are only counted."""


class Trace:
    """What a search met, by request."""

    def __init__(self) -> None:
        self._obstacles: dict[Wanted, dict[DeviceId, object]] = {}
        self._best: dict[Wanted, tuple[int, int]] = {}
        """The most devices that were had, and the number that is needed."""
        self._too_many: dict[Wanted, int] = {}

    def reached(self, wanted: Wanted, number: int, count: int) -> None:
        """So many devices of a request were had, of so many."""
        if number >= self._best.get(wanted, (0, 0))[0]:
            self._best[wanted] = (number, count)

    def too_many(self, wanted: Wanted, limit: int) -> None:
        """The claim would get more devices than the limit."""
        self._too_many[wanted] = limit

    def obstacle(self, wanted: Wanted, device: DeviceId, sentence: object) -> None:
        """The first obstacle counts: later ones come from other parts of the search.

        `sentence` need only print as one.
        """
        self._obstacles.setdefault(wanted, {}).setdefault(device, sentence)

    def reasons(self, claims: Iterable[ResourceClaim], node: CandidateNode) -> tuple[Reason, ...]:
        """For each request that never got what it needs; for all requests, if each did once."""
        names = [claim_name(claim) for claim in claims]
        failed = [
            wanted for wanted, (had, needed) in self._best.items() if had < needed or not needed
        ]
        reasons: list[Reason] = []
        for wanted in failed or self._best:
            reasons += self._of(wanted, names[wanted.claim], node)
        return tuple(reasons)

    def _of(self, wanted: Wanted, claim: str, node: CandidateNode) -> list[Reason]:
        grouped: dict[str, list[DeviceId]] = {}
        for device, sentence in self._obstacles.get(wanted, {}).items():
            grouped.setdefault(str(sentence), []).append(device)
        about = {"claim": claim, "request": wanted.name}
        reasons = [
            Reason(**about, devices=tuple(group), subject=_subject(group, node), sentence=sentence)
            for sentence, group in grouped.items()
        ]
        summary = self._summary(wanted)
        if summary:
            subject = f"claim {claim}, request {wanted.name}"
            reasons.insert(0, Reason(**about, devices=(), subject=subject, sentence=summary))
        return reasons

    def _summary(self, wanted: Wanted) -> str:
        had, needed = self._best[wanted]
        if wanted in self._too_many:
            return f"with it the claim would have more than {self._too_many[wanted]} devices"
        if not needed:
            return "all devices are asked for, and there is none"
        if needed > 1 and had < needed:
            return f"{needed} devices are needed, {had} can be had at once"
        if had >= needed:
            return "it could be had, but not together with the others"
        return "" if self._obstacles.get(wanted) else "there is no device to choose from"


def pool_reasons(pools: Iterable[Pool], node: CandidateNode) -> list[Reason]:
    """What is wrong with the pools that a node can reach."""
    pools = tuple(pools)
    if not pools:
        return [_about_node(node, "no driver offers devices there (no ResourceSlice reaches it)")]
    reasons = []
    for pool in pools:
        subject = f"pool {pool.name} of driver {pool.driver}"
        if pool.problem:
            reasons.append(
                _about_pool(subject, f"invalid, all of it is passed over: {pool.problem}")
            )
        elif pool.incomplete:
            reasons.append(
                _about_pool(subject, "not all its ResourceSlices are there; it is being updated")
            )
    return reasons


def _about_pool(subject: str, sentence: str) -> Reason:
    return Reason(claim="", request="", devices=(), subject=subject, sentence=sentence)


def _about_node(node: CandidateNode, sentence: str) -> Reason:
    return _about_pool(f"node {node.name}", sentence)


def _subject(devices: list[DeviceId], node: CandidateNode) -> str:
    names = ", ".join(device.device for device in devices[:_NAMED_DEVICES])
    if len(devices) > _NAMED_DEVICES:
        names = f"{len(devices)} devices ({names}, …)"
    return f"{names} on {node.name}"
