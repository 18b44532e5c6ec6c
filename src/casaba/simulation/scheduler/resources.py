"""What pods take of a node's cpu, memory and other counted resources, in billionths.

Source: Kubernetes, "Resource Management for Pods", and for init containers that stay KEP-753.
"""

from collections.abc import Iterable, Mapping

from casaba.model.quantity import quantity, whole
from casaba.simulation.workloads.objects import Container, Node, Pod, Quantities

Amounts = Mapping[str, int]
"""Billionths by resource name."""

PODS = "pods"


def requested(pod: Pod) -> Amounts:
    """What a pod needs at its worst moment: while an init container runs, or after all of them."""
    staying: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in pod.spec.init_containers:
        asked = _amounts(container.resources.requests)
        if container.restart_policy == "Always":
            staying = _added(staying, asked)
            starting = _greatest(starting, staying)
        else:
            starting = _greatest(starting, _added(staying, asked))
    running = _added(staying, *(_asked(container) for container in pod.spec.containers or ()))
    return _added(_greatest(starting, running), _amounts(pod.spec.overhead))


def shortages(pod: Pod, node: Node, others: Iterable[Pod]) -> tuple[str, ...]:
    """What the node has not enough of beside the others, in the scheduler's words."""
    here = tuple(others)
    offered = _amounts(node.status.allocatable)
    lacking = ["Too many pods"] if whole(len(here) + 1).nanos > offered.get(PODS, 0) else []
    needed = {name: amount for name, amount in requested(pod).items() if amount}
    if needed:
        taken = _added({}, *(requested(other) for other in here))
        lacking += [
            f"Insufficient {name}"
            for name, amount in needed.items()
            if amount > offered.get(name, 0) - taken.get(name, 0)
        ]
    return tuple(lacking)


def would_fit_alone(pod: Pod, node: Node) -> bool:
    """Whether the node is large enough for the pod, were it empty."""
    return not shortages(pod, node, ())


def _asked(container: Container) -> Amounts:
    return _amounts(container.resources.requests)


def _amounts(quantities: Quantities) -> dict[str, int]:
    return {name: quantity(str(text)).nanos for name, text in quantities.items()}


def _added(first: Amounts, *others: Amounts) -> dict[str, int]:
    total = dict(first)
    for amounts in others:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return total


def _greatest(one: Amounts, other: Amounts) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
