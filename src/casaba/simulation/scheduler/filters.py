"""May this pod run on that node? Everything but the devices, in the order of the real scheduler."""

from collections.abc import Iterable
from dataclasses import dataclass

from casaba.simulation.scheduler.news import News
from casaba.simulation.scheduler.node_selection import suits
from casaba.simulation.scheduler.resources import shortages, would_fit_alone
from casaba.simulation.workloads.objects import Node, Pod
from casaba.simulation.workloads.tolerations import UNSCHEDULABLE, is_tolerated, keeps_away


@dataclass(frozen=True, kw_only=True)
class NodeRefusal:
    """Why a pod can't run on a node; the reasons are the real scheduler's words."""

    reasons: tuple[str, ...]
    cures: frozenset[News]
    """News of the cluster after which it may be worth another look."""
    others_are_in_the_way: bool = False
    """Whether an emptier node would do, so that the real scheduler would think of preemption."""
    why: tuple[str, ...] = ()
    """The same for people, where more is known."""


def refusal(pod: Pod, node: Node, others: Iterable[Pod]) -> NodeRefusal | None:
    """The first thing that stands in the way; `others` are the pods on the node."""
    spec = pod.spec
    if node.spec.unschedulable and not is_tolerated(UNSCHEDULABLE, spec.tolerations):
        return _of_node("node(s) were unschedulable")
    if spec.node_name and spec.node_name != node.metadata.name:
        return _of_node("node(s) didn't match the requested node name")
    if keeps_away(node.spec.taints, spec.tolerations):
        return _of_node("node(s) had untolerated taint(s)")
    if not suits(pod, node):
        return _of_node("node(s) didn't match Pod's node affinity/selector")
    if lacking := shortages(pod, node, others):
        return NodeRefusal(
            reasons=lacking,
            cures=frozenset({News.NODE, News.POD_GONE}),
            others_are_in_the_way=would_fit_alone(pod, node),
        )
    return None


def _of_node(reason: str) -> NodeRefusal:
    return NodeRefusal(reasons=(reason,), cures=frozenset({News.NODE}))
