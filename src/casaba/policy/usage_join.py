"""Who uses what: prepared claims, the kubelet's pods, and what the regions say, joined.

The kubelet tells which containers use a claim, not which of its requests (PodResources API,
k8s.io/kubelet podresources/v1). Where a claim has several, a container's own mounts tell.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from casaba.model.claim import AllocatedClaim, Share
from casaba.model.gpu import Gpu
from casaba.model.gpu_process import ContainerMounts
from casaba.model.ids import ClaimUid, DeviceName, RequestName
from casaba.model.limits import CardLimits
from casaba.model.pod_use import PodInUse
from casaba.model.slice_use import CardUse, ContainerName, SliceUse
from casaba.model.usage import BudgetUsage, CardTimes
from casaba.policy.usage_history import BudgetKey, UsageHistory

KnownRequests = Mapping[tuple[str, str], frozenset[str]]
"""The requests of a claim that a container uses, by claim UID and container name."""


_NO_TIME = CardTimes(busy_ns=0, wait_ns=0)


def known_requests(mounts: Iterable[ContainerMounts]) -> KnownRequests:
    """What the mounts of containers tell."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for one in mounts:
        for claim, request in one.budgets:
            key = (claim, one.container)
            found[key] = found.get(key, frozenset()) | {request}
    return found


def join_usage(
    claims: Iterable[AllocatedClaim],
    gpus: Mapping[DeviceName, Gpu],
    pods: Iterable[PodInUse],
    budgets: Mapping[BudgetKey, BudgetUsage],
    history: UsageHistory,
    known: KnownRequests,
) -> tuple[SliceUse, ...]:
    """A SliceUse for each request of each claim, in order of namespace, claim and request."""
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


def unresolved(slices: Iterable[SliceUse], known: KnownRequests) -> bool:
    """Whether the mounts of some container would tell more than is known."""
    slices = tuple(slices)
    requests: dict[ClaimUid, int] = {}
    for one in slices:
        requests[one.claim_uid] = requests.get(one.claim_uid, 0) + 1
    return any(
        requests[one.claim_uid] > 1 and (one.claim_uid, user.container) not in known
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


def _with_own_users(slice_: SliceUse, known: KnownRequests) -> SliceUse:
    """Without the containers that are known to use other requests of the claim only."""
    if not known:
        return slice_
    users = tuple(
        user
        for user in slice_.users
        if slice_.request in known.get((slice_.claim_uid, user.container), {slice_.request})
    )
    return structs.replace(slice_, users=users)


def _slice(
    claim: AllocatedClaim,
    shares: list[Share],
    gpus: Mapping[DeviceName, Gpu],
    users: tuple[ContainerName, ...],
    budgets: Mapping[BudgetKey, BudgetUsage],
    history: UsageHistory,
) -> SliceUse:
    request = shares[0].request
    key = (claim.uid, request)
    budget = budgets.get(key)
    processes = budget.processes if budget else ()
    return SliceUse(
        namespace=claim.namespace,
        claim=claim.name,
        claim_uid=claim.uid,
        request=request,
        users=users,
        cards=tuple(_cards(budget, shares, gpus, history)),
        kinds_bytes=tuple(map(sum, zip(*[one.kinds_bytes for one in processes], strict=True))),
        pids=tuple([process.pid for process in processes]),
        refusals=budget.refusals if budget else 0,
        launches=history.launches(key),
        last_launch_ns=max([process.last_launch_ns for process in processes], default=0),
        damaged=bool(budget and budget.damaged),
    )


def _cards(
    budget: BudgetUsage | None,
    shares: list[Share],
    gpus: Mapping[DeviceName, Gpu],
    history: UsageHistory,
) -> Iterator[CardUse]:
    """In the policy's order of cards, which is that of the shares."""
    devices = list(dict.fromkeys([share.device for share in shares]))
    if budget is None:
        for device in devices:
            if device in gpus:
                yield _card_use(_promised(shares, gpus[device]), gpus[device].minor)
        return
    key = (budget.claim, budget.request)
    for number, limits in enumerate(budget.policy.cards):
        yield _card_use(
            limits,
            _minor(devices[number]) if number < len(devices) else number,
            asked=sum([process.cards[number].asked_bytes for process in budget.processes]),
            overhead=sum([process.cards[number].overhead_bytes for process in budget.processes]),
            times=budget.times[number] if budget.times else _NO_TIME,
            percent=history.card_percent(key, number),
        )


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


def _card_use(
    limits: CardLimits,
    minor: int,
    *,
    asked: int = 0,
    overhead: int = 0,
    times: CardTimes = _NO_TIME,
    percent: float | None = 0.0,
) -> CardUse:
    return CardUse(
        gpu=limits.gpu,
        minor=minor,
        memory_limit_bytes=limits.memory_bytes,
        cores_percent=limits.cores_percent,
        allowance_bytes=limits.context_allowance_bytes,
        memory_used_bytes=asked,
        overhead_bytes=overhead,
        busy_ns=times.busy_ns,
        wait_ns=times.wait_ns,
        card_percent=percent,
    )
