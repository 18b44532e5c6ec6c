"""Where a pod goes, and with which devices: one decision on one view of the cluster. Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from casaba.errors import InvalidInput
from casaba.kube import ObjectKey
from casaba.policy.allocation import (
    Allocated,
    Allocator,
    Refused,
)
from casaba.simulation.scheduler import messages
from casaba.simulation.scheduler.claims import ClaimRefused, PodClaims, pod_claims, sorted_out
from casaba.simulation.scheduler.filters import NodeRefusal, refusal
from casaba.simulation.scheduler.news import OF_CLAIMS, OF_DEVICES, News
from casaba.simulation.scheduler.node_selection import candidate, is_usable_on
from casaba.simulation.workloads.claim_names import ClaimNotMade, ClaimNotThere, is_reserved_for
from casaba.simulation.workloads.objects import Node, Pod
from casaba.wire.kubernetes import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice

NewShareId = Callable[[], str]
"""Makes the id of one share of a device, a fresh UUID."""


@dataclass(frozen=True, kw_only=True)
class ClusterView:
    """The cluster as the scheduler knows it, its own unfinished decisions included."""

    nodes: Mapping[str, Node]
    pods: Mapping[str, Sequence[Pod]]
    """By node, without those that ended."""
    claims: Mapping[ObjectKey, ResourceClaim]
    in_flight: Mapping[str, ResourceClaim]
    """Claims by UID whose allocation is decided but not written yet, with that allocation."""
    slices: Collection[ResourceSlice]
    classes: Mapping[str, DeviceClass]


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A node for a pod, and what has to be written before the pod is bound to it."""

    node: str
    allocations: tuple[tuple[ResourceClaim, AllocationResult], ...] = ()
    reservations: tuple[ResourceClaim, ...] = ()
    """Claims that have devices already, and lack only the pod as their user."""


@dataclass(frozen=True, kw_only=True)
class NotReady:
    """The pod's claims are not there; the real scheduler doesn't even say so."""

    message: str
    is_usual: bool = False
    """Whether a controller is about to help."""
    cures: frozenset[News] = OF_CLAIMS


@dataclass(frozen=True, kw_only=True)
class Unschedulable:
    """No node will do now."""

    message: str
    cures: frozenset[News]
    why: tuple[str, ...] = ()
    deallocate: ResourceClaim | None = None
    """A claim that nobody uses and that only keeps the pod on a node that is not for it."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """Something is wrong with a claim or class; the pod is tried again after a while."""

    message: str


Decision = Placed | NotReady | Unschedulable | Failed


@dataclass
class _Feasible:
    """What was found out about the nodes so far."""

    refusals: dict[str, NodeRefusal] = field(default_factory=dict)
    allocations: dict[str, tuple[AllocationResult, ...]] = field(default_factory=dict)
    misplaced: list[ResourceClaim] = field(default_factory=list)


def decide(pod: Pod, view: ClusterView, *, new_share_id: NewShareId) -> Decision:
    """The decision for a pod that has no node yet."""
    if not view.nodes:
        return Unschedulable(message=messages.NO_NODES, cures=frozenset({News.NODE}))
    may_preempt = pod.spec.preemption_policy != "Never"
    try:
        found = pod_claims(pod, view.claims)
        claims = sorted_out(pod, found, in_flight=view.in_flight, classes=view.classes)
        feasible = _look_at_nodes(pod, claims, view, new_share_id)
    except ClaimNotThere as error:
        return NotReady(message=str(error), is_usual=isinstance(error, ClaimNotMade))
    except ClaimRefused as error:
        text = messages.unfit_by_itself(str(error), len(view.nodes), may_preempt=may_preempt)
        return Unschedulable(message=text, cures=OF_DEVICES)
    except InvalidInput as error:  # AllocationFailed, or a quantity that is none
        return Failed(message=f'running "DynamicResources" filter plugin: {error}')
    if not feasible.allocations:
        return _unschedulable(pod, claims, feasible, may_preempt=may_preempt)
    node = min(feasible.allocations, key=lambda name: (len(view.pods.get(name, ())), name))
    return Placed(
        node=node,
        allocations=tuple(zip(claims.to_allocate, feasible.allocations[node], strict=True)),
        reservations=tuple(c for c in claims.allocated if not is_reserved_for(c, pod)),
    )


def _look_at_nodes(
    pod: Pod, claims: PodClaims, view: ClusterView, new_share_id: NewShareId
) -> _Feasible:
    allocator = _allocator(view, new_share_id) if claims.to_allocate else None
    feasible = _Feasible()
    for name, node in sorted(view.nodes.items()):
        refused = refusal(pod, node, view.pods.get(name, ()))
        refused = refused or _claims_elsewhere(claims, node, feasible)
        if refused is None and allocator:
            refused = _allocate(allocator, node, claims, feasible)
        elif refused is None:
            feasible.allocations[name] = ()
        if refused:
            feasible.refusals[name] = refused
    return feasible


def _allocator(view: ClusterView, new_share_id: NewShareId) -> Allocator:
    return Allocator(
        slices=tuple(view.slices),
        classes=view.classes,
        allocated=_holders(view),
        new_share_id=new_share_id,
    )


def _holders(view: ClusterView) -> list[ResourceClaim]:
    """Whoever holds devices; a claim may be written, and its writer not yet have the answer."""
    written = {claim.metadata.uid for claim in view.claims.values() if claim.status.allocation}
    unwritten = [claim for uid, claim in view.in_flight.items() if uid not in written]
    return [*view.claims.values(), *unwritten]


def _claims_elsewhere(claims: PodClaims, node: Node, feasible: _Feasible) -> NodeRefusal | None:
    away = [claim for claim in claims.allocated if not is_usable_on(claim, node)]
    if not away:
        return None
    feasible.misplaced += [claim for claim in away if claim not in feasible.misplaced]
    names = ", ".join(claim.metadata.name for claim in away)
    return NodeRefusal(
        reasons=("resourceclaim not available on the node",),
        cures=OF_DEVICES,
        why=(f"{names} has devices of another node than {node.metadata.name}",),
    )


def _allocate(
    allocator: Allocator, node: Node, claims: PodClaims, feasible: _Feasible
) -> NodeRefusal | None:
    match allocator.allocate(candidate(node), claims.to_allocate):
        case Allocated(results=results):
            feasible.allocations[node.metadata.name] = results
            return None
        case Refused(reason=reason, why=why):
            return NodeRefusal(
                reasons=(reason,), cures=OF_DEVICES, why=tuple(str(entry) for entry in why)
            )


def _unschedulable(
    pod: Pod, claims: PodClaims, feasible: _Feasible, *, may_preempt: bool
) -> Unschedulable:
    refusals = tuple(feasible.refusals.values())
    unused = next((claim for claim in feasible.misplaced if _is_nobody_elses(claim, pod)), None)
    after = messages.DEALLOCATED if unused else messages.STILL_NOT
    if not claims.allocated and not claims.to_allocate:
        after = messages.NOTHING_TO_DEALLOCATE
    return Unschedulable(
        message=messages.unfit_everywhere(refusals, after, may_preempt=may_preempt),
        cures=frozenset().union(*(refused.cures for refused in refusals)),
        why=tuple(dict.fromkeys(text for refused in refusals for text in refused.why)),
        deallocate=unused,
    )


def _is_nobody_elses(claim: ResourceClaim, pod: Pod) -> bool:
    users = claim.status.reserved_for
    return not users or (len(users) == 1 and users[0].uid == pod.metadata.uid)
