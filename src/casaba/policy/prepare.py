"""What it takes to prepare a claim on this node, and whether the node may promise it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from casaba.errors import NoRoom, PrepareRefused
from casaba.model.claim import AllocatedClaim, Share
from casaba.model.gpu import Gpu
from casaba.model.ids import DeviceName, NodeName, RequestName
from casaba.model.limits import CardLimits, Policy
from casaba.model.prepared import PreparedDevice
from casaba.model.quantity import format_binary
from casaba.policy.parameters import compute_terms
from casaba.settings import _host_paths as fixed
from casaba.settings.budgets import BudgetSettings
from casaba.settings.host_paths import CONTAINER_RUN_DIR
from casaba.wire import cdi

FULL_CORES_PERCENT = 100


@dataclass(frozen=True, kw_only=True)
class Budget:
    """One request's policy file and region: folder below the claims folder, and content."""

    request: RequestName
    policy: Policy


@dataclass(frozen=True, kw_only=True)
class PreparePlan:
    """Everything that a prepared claim leaves on the host, and the kubelet's answer."""

    claim: AllocatedClaim
    budgets: tuple[Budget, ...]
    cdi_spec: bytes
    devices: tuple[PreparedDevice, ...]


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """What the decision needs to know of the node."""

    node: NodeName
    gpus: Mapping[DeviceName, Gpu]
    guard_version: str
    claims_dir: Path
    budget_settings: BudgetSettings


def plan_prepare(
    claim: AllocatedClaim, promised: Iterable[AllocatedClaim], facts: NodeFacts
) -> PreparePlan:
    """The plan for a claim, given the other claims that this node serves already.

    Raises PrepareRefused, naming the value, when the claim can't be served here; NoRoom if that
    may change.
    """
    _check_devices(claim, facts)
    others = [share for other in promised if other.uid != claim.uid for share in other.shares]
    _check_room(claim, others, facts)
    requests = tuple(dict.fromkeys(share.request for share in claim.shares))
    return PreparePlan(
        claim=claim,
        budgets=tuple(_budget(claim, request, facts) for request in requests),
        cdi_spec=_claim_spec(claim, requests, facts.claims_dir),
        devices=tuple(_device(claim, share, facts) for share in claim.shares),
    )


def _check_devices(claim: AllocatedClaim, facts: NodeFacts) -> None:
    for share in claim.shares:
        if share.pool != facts.node:
            raise PrepareRefused(
                f"request {share.request} is allocated from pool {share.pool!r}, "
                f"but this node's pool is {facts.node!r}"
            )
        if share.device not in facts.gpus:
            known = ", ".join(sorted(facts.gpus)) or "no device"
            raise PrepareRefused(
                f"device {share.device!r} is not on node {facts.node} (it has {known}); "
                "if the card was removed, delete the pod and its claim"
            )


def _check_room(claim: AllocatedClaim, others: list[Share], facts: NodeFacts) -> None:
    """The last line of defence: the scheduler has decided, but two of them may have."""
    for name in dict.fromkeys(share.device for share in claim.shares):
        shares = [share for share in (*others, *claim.shares) if share.device == name]
        memory = sum(share.memory_bytes for share in shares)
        cores = sum(share.cores_percent for share in shares)
        card = facts.gpus[name].memory_bytes
        if memory > card or cores > FULL_CORES_PERCENT:
            raise NoRoom(
                f"device {name!r} would be promised {format_binary(memory)} of "
                f"{format_binary(card)} memory and {cores} of {FULL_CORES_PERCENT} cores: "
                "another claim that is still in use has taken it; is there a second scheduler?"
            )


def _budget(claim: AllocatedClaim, request: RequestName, facts: NodeFacts) -> Budget:
    shares = [share for share in claim.shares if share.request == request]
    names = dict.fromkeys(share.device for share in shares)
    cards = tuple(
        _card_limits([share for share in shares if share.device == name], facts.gpus[name], facts)
        for name in names
    )
    return Budget(
        request=request, policy=Policy(cards=cards, announce=facts.budget_settings.announce)
    )


def _card_limits(shares: list[Share], gpu: Gpu, facts: NodeFacts) -> CardLimits:
    """Several shares of one card in one request add up to one limit."""
    cores = sum(share.cores_percent for share in shares)
    terms = compute_terms(shares[0].parameters, cores)
    return CardLimits(
        gpu=gpu.uuid,
        memory_bytes=sum(share.memory_bytes for share in shares),
        context_allowance_bytes=facts.budget_settings.context_allowance_bytes,
        context_size_bytes=facts.budget_settings.context_size_bytes,
        cores_percent=terms.cores_percent,
        weight=terms.weight,
    )


def _claim_spec(
    claim: AllocatedClaim, requests: tuple[RequestName, ...], claims_dir: Path
) -> bytes:
    devices = tuple(
        cdi.CdiDevice(
            name=cdi.claim_device_name(claim.uid, request),
            mounts=_budget_mounts(PurePath(claim.uid, request), claims_dir),
        )
        for request in requests
    )
    return cdi.build_spec(cdi.CLAIM_CLASS, devices)


def _budget_mounts(folder: PurePath, claims_dir: Path) -> tuple[cdi.BindMount, ...]:
    inside = CONTAINER_RUN_DIR / fixed.CLAIMS / folder
    return tuple(
        cdi.BindMount(
            host=claims_dir / folder / name, container=inside / name, writable=name == fixed.REGION
        )
        for name in (fixed.POLICY, fixed.REGION)
    )


def _device(claim: AllocatedClaim, share: Share, facts: NodeFacts) -> PreparedDevice:
    return PreparedDevice(
        request=share.request,
        pool=share.pool,
        device=share.device,
        cdi_ids=(
            cdi.card_id(facts.gpus[share.device].uuid),
            cdi.guard_id(facts.guard_version),
            cdi.schedule_id(facts.gpus[share.device].uuid),
            cdi.claim_id(claim.uid, share.request),
        ),
        share_id=share.share_id,
    )
