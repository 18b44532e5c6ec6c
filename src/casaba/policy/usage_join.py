"""Who uses what: prepared claims, the kubelet's pods, and what the regions say, joined.

The kubelet tells which containers use a claim, not which of its requests (PodResources API,
k8s.io/kubelet podresources/v1). Where a claim has several, a container's own mounts tell.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from casaba.model.claim import AllocatedClaim, Share
from casaba.model.gpu import Gpu
from casaba.model.ids import ClaimUid, DeviceName, RequestName
from casaba.model.limits import CardLimits
from casaba.model.pod_use import PodInUse
from casaba.model.slice_use import CardUse, ContainerName, SliceUse
from casaba.model.usage import BudgetUsage
from casaba.policy.container_mounts import KnownMounts
from casaba.policy.usage_history import BudgetKey, UsageHistory

Budgets = Mapping[BudgetKey, BudgetUsage | None]
"""None: there, but it can't be read now. One that is not in it is not there yet."""


def join_usage(
    claims: Iterable[AllocatedClaim],
    gpus: Mapping[DeviceName, Gpu],
    pods: Iterable[PodInUse],
    budgets: Budgets,
    history: UsageHistory,
    known: KnownMounts,
) -> tuple[SliceUse, ...]:
    """A SliceUse for each request of each claim, in order of namespace, claim and request.

    What can't be read has limits, and nothing else that could be taken for a number.
    """
    users = _users(pods)
    slices = [
        _slice(claim, shares, gpus, users.get((claim.namespace, claim.name), ()), budgets, history)
        for claim in claims
        for shares in _by_request(claim.shares)
    ]
    told = [_with_own_users(slice_, known) for slice_ in slices]
    return tuple(sorted(told, key=lambda one: (one.namespace, one.claim, one.request)))


def _by_request(shares: Iterable[Share]) -> Iterable[list[Share]]:
    """The shares of each request, of which there is one at least."""
    found: dict[RequestName, list[Share]] = {}
    for share in shares:
        found.setdefault(share.request, []).append(share)
    return found.values()


def unresolved(slices: Iterable[SliceUse], known: KnownMounts) -> bool:
    """Whether the mounts of some container would tell more than is known."""
    slices = tuple(slices)
    requests: dict[ClaimUid, int] = {}
    for one in slices:
        requests[one.claim_uid] = requests.get(one.claim_uid, 0) + 1
    return any(
        requests[one.claim_uid] > 1 and known.requests(one.claim_uid, user) is None
        for one in slices
        for user in one.users
    )


def _users(pods: Iterable[PodInUse]) -> dict[tuple[str, str], tuple[ContainerName, ...]]:
    """Containers by namespace and name of the claims that they use."""
    found: dict[tuple[str, str], list[ContainerName]] = {}
    for pod in pods:
        for container, claims in pod.containers:
            name = ContainerName(pod=pod.name, container=container)
            for key in dict.fromkeys((claim.namespace, claim.name) for claim in claims):
                found.setdefault(key, []).append(name)
    return {key: tuple(names) for key, names in found.items()}


def _with_own_users(slice_: SliceUse, known: KnownMounts) -> SliceUse:
    """Without the containers that are known to use other requests of the claim only."""
    if not known.by_container:
        return slice_
    users = tuple(
        user
        for user in slice_.users
        if (own := known.requests(slice_.claim_uid, user)) is None or slice_.request in own
    )
    return structs.replace(slice_, users=users)


def _slice(
    claim: AllocatedClaim,
    shares: list[Share],
    gpus: Mapping[DeviceName, Gpu],
    users: tuple[ContainerName, ...],
    budgets: Budgets,
    history: UsageHistory,
) -> SliceUse:
    request = shares[0].request
    key = (claim.uid, request)
    budget = budgets.get(key)
    is_read = key not in budgets or (budget is not None and not budget.damaged)
    processes = budget.processes if budget else ()
    return SliceUse(
        namespace=claim.namespace,
        claim=claim.name,
        claim_uid=claim.uid,
        request=request,
        users=users,
        cards=tuple(_cards(budget, is_read, shares, gpus, history)),
        kinds_bytes=tuple(map(sum, zip(*[one.kinds_bytes for one in processes], strict=True))),
        pids=tuple([process.pid for process in processes]) if is_read else None,
        refusals=(budget.refusals if budget else 0) if is_read else None,
        launches=history.launches(key) if is_read else None,
        last_launch_ns=max([process.last_launch_ns for process in processes], default=0),
        damaged=bool(budget and budget.damaged),
    )


def _cards(
    budget: BudgetUsage | None,
    is_read: bool,
    shares: list[Share],
    gpus: Mapping[DeviceName, Gpu],
    history: UsageHistory,
) -> Iterator[CardUse]:
    """In the policy's order of cards, which is that of the shares."""
    devices = list(dict.fromkeys([share.device for share in shares]))
    if budget is None:
        for device in devices:
            if device in gpus:
                limits = _promised(shares, gpus[device])
                use_of = _unused if is_read else _unread
                yield use_of(limits, gpus[device].minor)
        return
    for number, limits in enumerate(budget.policy.cards):
        minor = _minor(devices[number]) if number < len(devices) else number
        if is_read:
            yield _used(budget, number, limits, minor, history)
        else:
            yield _unread(limits, minor)


def _promised(shares: list[Share], gpu: Gpu) -> CardLimits:
    """Before, or after, there is a policy file."""
    own = [share for share in shares if share.device == gpu.device_name]
    return CardLimits(
        gpu=gpu.uuid,
        memory_bytes=sum(share.memory_bytes for share in own),
        cores_percent=sum(share.cores_percent for share in own),
        context_allowance_bytes=0,
        context_size_bytes=0,
    )


def _minor(device: DeviceName) -> int:
    """Of a device such as hami-gpu-3."""
    return int(device.rpartition("-")[2])


def _used(
    budget: BudgetUsage, number: int, limits: CardLimits, minor: int, history: UsageHistory
) -> CardUse:
    key = (budget.claim, budget.request)
    return CardUse(
        gpu=limits.gpu,
        minor=minor,
        memory_limit_bytes=limits.memory_bytes,
        cores_percent=limits.cores_percent,
        allowance_bytes=limits.context_allowance_bytes,
        memory_used_bytes=sum([one.cards[number].asked_bytes for one in budget.processes]),
        overhead_bytes=sum([one.cards[number].overhead_bytes for one in budget.processes]),
        busy_ns=history.busy_ns(key, number),
        wait_ns=budget.times[number].wait_ns,
        card_percent=history.card_percent(key, number),
    )


def _unused(limits: CardLimits, minor: int) -> CardUse:
    return structs.replace(
        _unread(limits, minor),
        memory_used_bytes=0,
        overhead_bytes=0,
        busy_ns=0,
        wait_ns=0,
        card_percent=0.0,
    )


def _unread(limits: CardLimits, minor: int) -> CardUse:
    return CardUse(
        gpu=limits.gpu,
        minor=minor,
        memory_limit_bytes=limits.memory_bytes,
        cores_percent=limits.cores_percent,
        allowance_bytes=limits.context_allowance_bytes,
    )
