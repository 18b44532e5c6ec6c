"""Which nodes a pod or an allocated claim may be on; the terms are read as the allocator does."""

from casaba.policy.allocation import CandidateNode, selects
from casaba.simulation.workloads.objects import Node, Pod
from casaba.wire.kubernetes import ResourceClaim


def candidate(node: Node) -> CandidateNode:
    """The node as the allocator knows it."""
    return CandidateNode(name=node.metadata.name, labels=node.metadata.labels)


def suits(pod: Pod, node: Node) -> bool:
    """Whether the node is one that the pod's nodeSelector and required affinity allow."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required if affinity else None
    return required is None or selects(required, candidate(node))


def is_usable_on(claim: ResourceClaim, node: Node) -> bool:
    """Whether the devices of an allocated claim can be used on the node."""
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation else None
    return selector is None or selects(selector, candidate(node))
