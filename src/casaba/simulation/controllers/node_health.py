"""Whether a node is alive, and what it is marked with if not (node-lifecycle-controller).

A node lives while its Lease or its Ready condition moves. Both are compared with what was seen
before and timed by our own clock: the clocks of nodes need not be right.
"""

from dataclasses import dataclass
from typing import Any

from casaba.simulation.workloads.objects import Condition, Node, Taint
from casaba.wire.kubernetes import Lease

UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"
CORDONED = "node.kubernetes.io/unschedulable"

_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_BY_KUBELET = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_EFFECTS_OF_READY = ("NoSchedule", "NoExecute")
_OURS = {UNREACHABLE, NOT_READY, CORDONED, *_PRESSURES.values()}

TaintName = tuple[str, str]
"""Key and effect."""


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """The last sign of life of a node, and when we saw it by our own clock."""

    seen_at_s: float
    sign: tuple[str | None, str | None]

    def next(self, node: Node, lease: Lease | None, now_s: float) -> "Heartbeat":
        """With what is seen now; the same if nothing has moved."""
        sign = _sign(node, lease)
        return self if sign == self.sign else Heartbeat(seen_at_s=now_s, sign=sign)


def first_heartbeat(node: Node, lease: Lease | None, now_s: float) -> Heartbeat:
    """Of a node that was not known: it has the whole grace period from now on."""
    return Heartbeat(seen_at_s=now_s, sign=_sign(node, lease))


def unknown_conditions(node: Node, now: str) -> list[dict[str, Any]]:
    """What the conditions become when the node's kubelet is silent; only those that change."""
    known = {condition.type: condition for condition in node.status.conditions}
    return [
        _unknown(type_, known.get(type_), node.metadata.creation_timestamp, now)
        for type_ in _BY_KUBELET
        if type_ not in known or known[type_].status != "Unknown"
    ]


def wanted_taints(node: Node) -> frozenset[TaintName]:
    """The taints that the node's conditions and its cordon call for, of those that are ours."""
    known = {condition.type: condition.status for condition in node.status.conditions}
    wanted = {
        (key, "NoSchedule") for type_, key in _PRESSURES.items() if known.get(type_) == "True"
    }
    if known.get("Ready") in ("False", "Unknown"):
        key = UNREACHABLE if known["Ready"] == "Unknown" else NOT_READY
        wanted |= {(key, effect) for effect in _EFFECTS_OF_READY}
    if node.spec.unschedulable:
        wanted.add((CORDONED, "NoSchedule"))
    return frozenset(wanted)


def has_wanted_taints(node: Node) -> bool:
    """Whether nothing has to be written."""
    return _ours(node.spec.taints) == wanted_taints(node)


def with_wanted_taints(
    taints: list[dict[str, Any]], wanted: frozenset[TaintName], now: str
) -> list[dict[str, Any]]:
    """The node's taints as they were read, ours made right and all others left."""
    kept = [
        taint
        for taint in taints
        if taint["key"] not in _OURS or (taint["key"], taint["effect"]) in wanted
    ]
    there = {(taint["key"], taint["effect"]) for taint in kept}
    new = sorted(wanted - there)
    return kept + [{"key": key, "effect": effect, "timeAdded": now} for key, effect in new]


def is_ready(node: Node) -> bool:
    """Whether the node says so itself, or nobody has said anything else."""
    return all(c.status == "True" for c in node.status.conditions if c.type == "Ready")


def _ours(taints: tuple[Taint, ...]) -> frozenset[TaintName]:
    return frozenset((taint.key, taint.effect) for taint in taints if taint.key in _OURS)


def _sign(node: Node, lease: Lease | None) -> tuple[str | None, str | None]:
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    return (lease.spec.renew_time if lease else None, ready.last_heartbeat_time if ready else None)


def _unknown(type_: str, known: Condition | None, created: str | None, now: str) -> dict[str, Any]:
    condition = {"type": type_, "status": "Unknown", "lastTransitionTime": now}
    if known is None:
        never = "Kubelet never posted node status."
        return {
            **condition,
            "reason": "NodeStatusNeverUpdated",
            "message": never,
            "lastHeartbeatTime": created,
        }
    silent = "Kubelet stopped posting node status."
    return {**condition, "reason": "NodeStatusUnknown", "message": silent}
