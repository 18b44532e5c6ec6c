"""Who has what of which card: slices, claims and pods joined."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from casaba.policy.allocation import DeviceId
from casaba.policy.allocation_metrics.cards import Card, cards_of
from casaba.policy.allocation_metrics.containers import FindPod, User, claims_in_demand, users_of
from casaba.policy.allocation_metrics.reading import amount
from casaba.policy.slices import CORES, MEMORY
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.kubernetes import DeviceRequestAllocationResult, Pod, ResourceClaim, ResourceSlice

__all__ = ["Account", "Card", "Held", "Share", "User", "account"]

UNUSED, PENDING, ALLOCATED, RESERVED = "unused", "pending", "allocated", "reserved"
"""States of claims: not allocated, and no pod asks for it; not allocated while a pod waits for it;
allocated and in nobody's use; held for a pod."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one request of a claim has of a card."""

    card: Card
    namespace: str
    claim: str
    memory_bytes: int
    cores: int
    """Percent of the card's compute."""
    users: tuple[User, ...]
    """Pods that the claim is reserved for."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """What all claims together have of a card."""

    memory_bytes: int = 0
    cores: int = 0
    containers: int = 0
    """Containers that may use it; a share of which none is known counts for one."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """A cluster's cards and who has what of them."""

    cards: tuple[Card, ...]
    shares: tuple[Share, ...]
    held: Mapping[DeviceId, Held]
    """By card; of every card."""
    lost_shares: int
    """Shares of cards that no slice shows."""
    claims: Mapping[str, int]
    """Claims of our class or driver by state; every state is there."""


def account(
    slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim],
    find_pod: FindPod,
    pods: Iterable[Pod] = (),
) -> Account:
    """The account of one moment. Of a pod that is not found no container is known.

    `pods` are all that there are: one of them waits for a claim that is pending.
    """
    cards, known = cards_of(slices)
    shares: list[Share] = []
    lost = 0
    ours: list[ResourceClaim] = []
    for claim in claims:
        results = tuple(_results(claim))
        if results or _asks_us(claim):
            ours.append(claim)
        for result in results:
            card = known.get((result.pool, result.device))
            if card is None:
                lost += 1
            else:
                shares.append(_share(claim, result, card, find_pod))
    return Account(
        cards=cards,
        shares=tuple(shares),
        held={card.id: held for card, held in _held(cards, shares)},
        lost_shares=lost,
        claims=_states(ours, pods),
    )


def _results(claim: ResourceClaim) -> Iterator[DeviceRequestAllocationResult]:
    """Of our driver; adminAccess takes nothing."""
    if claim.status.allocation is not None:
        for result in claim.status.allocation.devices.results:
            if result.driver == DRIVER_NAME and not result.admin_access:
                yield result


def _asks_us(claim: ResourceClaim) -> bool:
    """Whether a claim that may not be allocated names our class."""
    for request in claim.spec.devices.requests or ():
        asked = (request.exactly,) if request.exactly else request.first_available
        if any(one.device_class_name == DRIVER_NAME for one in asked):
            return True
    return False


def _states(claims: Iterable[ResourceClaim], pods: Iterable[Pod]) -> Mapping[str, int]:
    """Pods are gone through only if a claim has nothing yet."""
    states = Counter({UNUSED: 0, PENDING: 0, ALLOCATED: 0, RESERVED: 0})
    without: list[ResourceClaim] = []
    for claim in claims:
        if claim.status.allocation is None:
            without.append(claim)
        else:
            states[RESERVED if claim.status.reserved_for else ALLOCATED] += 1
    demanded = claims_in_demand(pods) if without else frozenset()
    for claim in without:
        waits = (claim.metadata.namespace, claim.metadata.name) in demanded
        states[PENDING if waits else UNUSED] += 1
    return states


def _share(
    claim: ResourceClaim, result: DeviceRequestAllocationResult, card: Card, find_pod: FindPod
) -> Share:
    """A device without a share id is held whole, as the scheduler counts it."""
    whole = result.share_id is None
    consumed = result.consumed_capacity
    return Share(
        card=card,
        namespace=claim.metadata.namespace,
        claim=claim.metadata.name,
        memory_bytes=card.memory_bytes if whole else amount(consumed.get(MEMORY)),
        cores=card.cores if whole else amount(consumed.get(CORES)),
        users=users_of(claim, result.request, find_pod),
    )


def _held(cards: Iterable[Card], shares: Iterable[Share]) -> Iterator[tuple[Card, Held]]:
    of: dict[DeviceId, list[Share]] = {}
    for share in shares:
        of.setdefault(share.card.id, []).append(share)
    for card in cards:
        mine = of.get(card.id, [])
        containers = {
            (share.namespace, user.pod, container)
            for share in mine
            for user in share.users
            for container in user.containers
        }
        unknown = sum(not any(user.containers for user in share.users) for share in mine)
        yield (
            card,
            Held(
                memory_bytes=sum(share.memory_bytes for share in mine),
                cores=sum(share.cores for share in mine),
                containers=len(containers) + unknown,
            ),
        )
