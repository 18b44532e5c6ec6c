"""What kubelets may write: what is their own node's."""

import pytest

from casaba.simulation.api_server.requests import Object
from tests.unit.simulation.admission_world import admitted, refused
from tests.unit.simulation.small_cluster import (
    ADMIN,
    KUBELET,
    SmallCluster,
    pod,
)


def node(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}, "spec": {}}


def mirror(name: str, on: str) -> Object:
    made = pod(name, on)
    metadata = {**made["metadata"], "annotations": {"kubernetes.io/config.mirror": "x"}}
    return {**made, "metadata": metadata}


def lease(name: str) -> Object:
    return {"metadata": {"name": name}}


def slice_(on: str) -> Object:
    return {"metadata": {"name": "slice"}, "spec": {"nodeName": on}}


KUBELET_REFUSALS: list[tuple[str, str, Object | None, Object | None, str, str]] = [
    (
        "create",
        "pods",
        pod("one", "edge-1"),
        None,
        "",
        'pods "one" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, '
        'node "edge-1" can only create mirror pods',
    ),
    (
        "create",
        "pods",
        mirror("one", "edge-2"),
        None,
        "",
        'pods "one" is forbidden: node "edge-1" can only create pods with spec.nodeName set to '
        "itself",
    ),
    (
        "delete",
        "pods",
        None,
        pod("one", "edge-2"),
        "",
        'pods "one" is forbidden: node "edge-1" can only delete pods with spec.nodeName set to '
        "itself",
    ),
    (
        "patch",
        "pods",
        pod("one", "edge-2"),
        pod("one", "edge-2"),
        "status",
        'pods "one" is forbidden: node "edge-1" can only update pod status for pods with '
        "spec.nodeName set to itself",
    ),
    (
        "patch",
        "pods",
        mirror("one", "edge-1") | {"metadata": {"name": "one", "labels": {"a": "b"}}},
        mirror("one", "edge-1"),
        "status",
        'pods "one" is forbidden: node "edge-1" cannot update labels through pod status',
    ),
    (
        "create",
        "nodes",
        node("edge-2"),
        None,
        "",
        'nodes "edge-2" is forbidden: node "edge-1" is not allowed to modify node "edge-2"',
    ),
    (
        "patch",
        "nodes",
        node("edge-1", **{"node-restriction.kubernetes.io/a": "b"}),
        node("edge-1"),
        "",
        'nodes "edge-1" is forbidden: is not allowed to modify labels: '
        "node-restriction.kubernetes.io/a",
    ),
    (
        "patch",
        "nodes",
        {**node("edge-1"), "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
        node("edge-1"),
        "",
        'nodes "edge-1" is forbidden: node "edge-1" is not allowed to modify taints',
    ),
    (
        "create",
        "leases",
        lease("edge-9"),
        None,
        "",
        'leases.coordination.k8s.io "edge-9" is forbidden: can only access node lease with the '
        "same name as the requesting node",
    ),
    (
        "create",
        "resourceslices",
        slice_("edge-2"),
        None,
        "",
        'resourceslices.resource.k8s.io "slice" is forbidden: can only create ResourceSlice with '
        "the same NodeName as the requesting node",
    ),
]


@pytest.mark.parametrize(
    ("verb", "plural", "object_", "old", "subresource", "message"), KUBELET_REFUSALS
)
async def test_a_kubelet_writes_only_what_is_its_own(
    cluster: SmallCluster,
    verb: str,
    plural: str,
    object_: Object | None,
    old: Object | None,
    subresource: str,
    message: str,
) -> None:
    error = await refused(cluster, KUBELET, verb, plural, object_, old, subresource=subresource)
    assert (error.code, str(error)) == (403, message)
    await admitted(cluster, ADMIN, verb, plural, object_, old, subresource=subresource)


OWN_LABELS = {
    "gpu": "on",
    "kubernetes.io/hostname": "edge-1",
    "node.kubernetes.io/x": "y",
    "example.com/a": "b",
}


@pytest.mark.parametrize(
    ("verb", "plural", "object_", "old", "subresource"),
    [
        ("create", "pods", mirror("one", "edge-1"), None, ""),
        ("delete", "pods", None, pod("one", "edge-1"), ""),
        ("patch", "pods", pod("one", "edge-1"), pod("one", "edge-1"), "status"),
        ("patch", "nodes", node("edge-1", **OWN_LABELS), node("edge-1"), ""),
        ("create", "leases", lease("edge-1"), None, ""),
        ("create", "resourceslices", slice_("edge-1"), None, ""),
    ],
)
async def test_a_kubelet_writes_its_own(
    cluster: SmallCluster,
    verb: str,
    plural: str,
    object_: Object | None,
    old: Object | None,
    subresource: str,
) -> None:
    await admitted(cluster, KUBELET, verb, plural, object_, old, subresource=subresource)
