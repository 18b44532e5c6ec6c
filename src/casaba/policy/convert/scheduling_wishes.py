"""Annotations that tell HAMi's scheduler how to place a pod, as far as a claim can say it.

In a claim, constraints hold or the pod waits; DRA knows no preference between devices (KEP-4970
is open), and which node is taken is kube-scheduler's business. Within a node the allocator takes
the first card that has room, which is `binpack`. `resource.kubernetes.io/pcieRoot` is not a NUMA
node: cards of one root are on one node, but a node has several roots, often one for each card.
So it only stands for `numa` and `topology-aware` where the operator wants that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from casaba.policy.convert.demands import Demand
from casaba.policy.convert.pods import Object, Role, annotation, spec
from casaba.policy.convert.refusals import PodRefused, shown, warning
from casaba.settings.conversion import ConversionSettings

GPU_POLICY = "hami.io/gpu-scheduler-policy"
NODE_POLICY = "hami.io/node-scheduler-policy"
WEIGHTS = "hami.io/device-scoring-weights"
NUMA_BIND = "nvidia.com/numa-bind"
MODE = "nvidia.com/vgpu-mode"

HAMI_CORE = "hami-core"
HAMI_SCHEDULER = "hami-scheduler"

BINPACK, SPREAD, MUTEX = "binpack", "spread", "mutex"
TOPOLOGY, NUMA = "topology-aware", "numa"
GPU_POLICIES = (BINPACK, SPREAD, TOPOLOGY, MUTEX, NUMA)
NODE_POLICIES = (BINPACK, SPREAD)

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("", "0", "f", "F", "FALSE", "false", "False")


@dataclass(frozen=True, kw_only=True)
class SchedulingWishes:
    """What the annotations come to."""

    whole_cards: bool = False
    """`mutex`: cards that nobody uses, now or later. So each is asked for with all its memory."""
    distinct_cards: bool = False
    """No two requests of the pod are on one card."""
    one_pcie_root: bool = False
    """The cards of each container are below one PCIe root."""
    warnings: tuple[str, ...] = ()


def scheduling_wishes(
    pod: Object, demands: Sequence[Demand], settings: ConversionSettings
) -> SchedulingWishes:
    """What the annotations ask for, given what the containers ask for.

    Raises PodRefused for a mode that there is not, and for values that HAMi doesn't know either.
    """
    _check_mode(pod)
    policies = _policies(pod, GPU_POLICY, GPU_POLICIES)
    near = [name for name in (TOPOLOGY, NUMA) if name in policies]
    sources = ([f"{GPU_POLICY}: {', '.join(near)}"] if near else []) + _numa_bind(pod)
    wants_near = bool(sources) and any(one.count > 1 for one in demands)
    constrains = settings.policies_as_constraints
    spreads = constrains and SPREAD in policies and _may_share(demands)
    warnings = _node_warnings(pod)
    if MUTEX in policies:
        warnings.append(_MUTEX_WARNING)
    if wants_near and not constrains:
        warnings.append(_near_warning(sources))
    if SPREAD in policies and not spreads:
        warnings.append(_SPREAD_WARNING)
    return SchedulingWishes(
        whole_cards=MUTEX in policies,
        distinct_cards=spreads,
        one_pcie_root=wants_near and constrains,
        warnings=tuple(warning(text) for text in warnings),
    )


def _may_share(demands: Sequence[Demand]) -> bool:
    """Whether containers with cards run at the same time: init containers do with sidecars."""
    roles = [one.container.role for one in demands]
    return len(roles) - roles.count(Role.INIT) > 1 or {Role.SIDECAR, Role.INIT} <= set(roles)


def _check_mode(pod: Object) -> None:
    """A comma list is one of modes that will do, as for HAMi."""
    mode = annotation(pod, MODE)
    if mode and HAMI_CORE not in [part.strip() for part in mode.split(",")]:
        raise PodRefused(
            f"annotation {MODE}: {shown(mode)} is not offered by this driver, which shares cards "
            f"in one way; write {HAMI_CORE} or leave it out"
        )


def _policies(pod: Object, name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """An ordered comma list; empty where nothing is said."""
    text = annotation(pod, name)
    if not text:
        return ()
    policies = tuple(part.strip() for part in text.split(","))
    for policy in policies:
        if policy not in known:
            raise PodRefused(
                f"annotation {name}: {shown(policy)} is unknown; use one of {', '.join(known)}"
            )
    return policies


def _numa_bind(pod: Object) -> list[str]:
    value = annotation(pod, NUMA_BIND)
    if value not in (*_TRUE, *_FALSE):
        raise PodRefused(f'annotation {NUMA_BIND}: {shown(value)}: write "true" or "false"')
    return [f"{NUMA_BIND}: {value}"] if value in _TRUE else []


def _near_warning(sources: list[str]) -> str:
    return (
        f"{' and '.join(sources)} has no effect: cards don't tell their NUMA node; for cards of "
        "one PCIe root write a claim with matchAttribute resource.kubernetes.io/pcieRoot"
    )


_MUTEX_WARNING = (
    f"{GPU_POLICY}: {MUTEX}: the pod gets cards that nobody uses, with all their memory, and "
    "nobody else gets a share of them"
)

_SPREAD_WARNING = (
    f"{GPU_POLICY}: {SPREAD} has no effect: the first card that has room is taken, also beside "
    "other pods; to keep containers apart write a claim with distinctAttribute on the cards' uuid"
)


def _node_warnings(pod: Object) -> list[str]:
    """What concerns the choice of the node."""
    warnings = []
    policies = _policies(pod, NODE_POLICY, NODE_POLICIES)
    if policies:
        fix = "podAffinity" if policies[0] == BINPACK else "topologySpreadConstraints"
        warnings.append(
            f"{NODE_POLICY}: {policies[0]} has no effect: kube-scheduler chooses the node; "
            f"use {fix} in the pod"
        )
    if annotation(pod, WEIGHTS):
        warnings.append(f"{WEIGHTS} has no effect: DRA does not score devices; leave it out")
    if spec(pod).get("schedulerName") == HAMI_SCHEDULER:
        warnings.append(
            f"schedulerName {HAMI_SCHEDULER}: claims are allocated by kube-scheduler; leave it out "
            "unless a scheduler of that name runs here"
        )
    return warnings
