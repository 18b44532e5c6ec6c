"""The sentence on a pod that fits nowhere, as kubectl's users know it."""

from collections import Counter
from collections.abc import Collection

from casaba.simulation.scheduler.filters import NodeRefusal

NO_NODES = "no nodes available to schedule pods"
NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
DEALLOCATED = "deallocation of ResourceClaim completed"
STILL_NOT = "still not schedulable"

_HELPLESS = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"


def unfit_everywhere(
    refusals: Collection[NodeRefusal], after: str, *, may_preempt: bool = True
) -> str:
    """For a pod that every node refused; `after` is what was tried with its claims then."""
    counts = Counter(reason for refusal in refusals for reason in refusal.reasons)
    emptier = sum(refusal.others_are_in_the_way for refusal in refusals)
    return (
        f"{_head(len(refusals))} {_histogram(counts)} {after}, "
        f"{_preemption(len(refusals), emptier, may_preempt)}"
    )


def unfit_by_itself(reason: str, nodes: int, *, may_preempt: bool = True) -> str:
    """For a pod that was refused before any node was looked at."""
    return f"{_head(nodes)} {reason}. {NOTHING_TO_DEALLOCATE}, {_preemption(nodes, 0, may_preempt)}"


def _preemption(nodes: int, emptier: int, may_preempt: bool) -> str:
    """This scheduler never preempts; the real one finds nothing either where all pods are equal."""
    if not may_preempt:
        return "preemption: not eligible due to preemptionPolicy=Never."
    counts = Counter({_NO_VICTIMS: emptier, _HELPLESS: nodes - emptier})
    return f"preemption: {_head(nodes)} {_histogram(+counts)}"


def _head(nodes: int) -> str:
    return f"0/{nodes} nodes are available:"


def _histogram(counts: Counter[str]) -> str:
    """Sorted as text, numbers included, like the real one."""
    return ", ".join(sorted(f"{number} {reason}" for reason, number in counts.items())) + "."
