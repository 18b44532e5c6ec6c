"""What events are about."""

from casaba.kube import About
from casaba.simulation.workloads.objects import Node, Pod


def about_pod(pod: Pod) -> About:
    """The pod."""
    meta = pod.metadata
    return About(
        api_version="v1", kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid
    )


def about_node(node: Node) -> About:
    """The node; like the kubelet, controllers say the name for the UID."""
    name = node.metadata.name
    return About(api_version="v1", kind="Node", name=name, uid=name)
