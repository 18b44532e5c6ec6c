from typing import Any

import pytest

from casaba.simulation.api_server.authorization import (
    authorized,
    check_authorized,
    check_path_authorized,
)
from casaba.simulation.api_server.requests import ANONYMOUS, Object, UserInfo
from casaba.simulation.api_server.statuses import ApiError
from tests.unit.simulation.small_cluster import (
    ADMIN,
    ANNA,
    KUBELET,
    SmallCluster,
    asked,
    rule,
)

DRA = "resource.k8s.io"
ACCOUNT = UserInfo(username="system:serviceaccount:ns:agent", groups=("system:authenticated",))
NO_RELATION = "no relationship found between node 'edge-1' and this object"


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (
            asked(ANNA, "list", "pods"),
            'User "anna" cannot list resource "pods" in API group "" in the namespace "default"',
        ),
        (
            asked(ANNA, "list", "deviceclasses"),
            'User "anna" cannot list resource "deviceclasses" in API group "resource.k8s.io" '
            "at the cluster scope",
        ),
        (
            asked(ANNA, "get", "pods", "x", subresource="log"),
            'User "anna" cannot get resource "pods/log" in API group "" in the namespace "default"',
        ),
        (
            asked(ANNA, "get", "namespaces", "web"),
            'User "anna" cannot get resource "namespaces" in API group "" in the namespace "web"',
        ),
        (
            asked(ANNA, "create", "namespaces", "web"),
            'User "anna" cannot create resource "namespaces" in API group "" at the cluster scope',
        ),
    ],
)
def test_refusals_are_the_real_sentences(
    cluster: SmallCluster, request_: Any, sentence: str
) -> None:
    assert authorized(request_, cluster) == sentence


def test_a_refusal_names_the_object_if_the_request_does(cluster: SmallCluster) -> None:
    query = {"fieldSelector": "metadata.name=gpu"}
    with pytest.raises(ApiError) as refusal:
        check_authorized(asked(ANNA, "list", "deviceclasses", query=query), cluster)
    assert refusal.value.status["message"].startswith(
        'deviceclasses.resource.k8s.io "gpu" is forbidden: User "anna" cannot list'
    )
    assert refusal.value.status["details"] == {
        "name": "gpu",
        "group": DRA,
        "kind": "deviceclasses",
    }


def test_superusers_may_do_everything(cluster: SmallCluster) -> None:
    assert authorized(asked(ADMIN, "deletecollection", "secrets"), cluster) is None
    check_path_authorized(ADMIN, "get", "/anything", cluster)


@pytest.mark.parametrize(
    ("given", "wanted", "allowed"),
    [
        (rule("get list", "pods"), asked(ANNA, "list", "pods"), True),
        (rule("get list", "pods"), asked(ANNA, "watch", "pods"), False),
        (rule("*", "*"), asked(ANNA, "delete", "secrets", "x"), True),
        (rule("*", "*"), asked(ANNA, "get", "resourceslices", "x"), False),
        (rule("*", "*", "*"), asked(ANNA, "get", "resourceslices", "x"), True),
        (rule("*", "pods"), asked(ANNA, "get", "pods", "x", subresource="status"), False),
        (rule("*", "pods/status"), asked(ANNA, "get", "pods", "x", subresource="status"), True),
        (rule("*", "*/status"), asked(ANNA, "get", "pods", "x", subresource="status"), True),
        (rule("*", "*/status"), asked(ANNA, "get", "pods", "x"), False),
        (rule("*", "*"), asked(ANNA, "get", "pods", "x", subresource="status"), True),
        (rule("get", "pods", resourceNames=["x"]), asked(ANNA, "get", "pods", "x"), True),
        (rule("get", "pods", resourceNames=["x"]), asked(ANNA, "get", "pods", "y"), False),
        (rule("list", "pods", resourceNames=["x"]), asked(ANNA, "list", "pods"), False),
        (
            rule("watch", "pods", resourceNames=["x"]),
            asked(ANNA, "watch", "pods", query={"fieldSelector": "metadata.name=x"}),
            True,
        ),
        (rule("create", "pods", resourceNames=["x"]), asked(ANNA, "create", "pods", "x"), False),
    ],
)
def test_rules_allow_what_they_name(
    cluster: SmallCluster, given: Object, wanted: Any, allowed: bool
) -> None:
    cluster.grant(ANNA, given)
    assert (authorized(wanted, cluster) is None) == allowed


def test_a_role_ends_at_its_namespace(cluster: SmallCluster) -> None:
    cluster.grant(ANNA, rule("get", "pods"), namespace="web")
    assert authorized(asked(ANNA, "get", "pods", "x", namespace="web"), cluster) is None
    assert authorized(asked(ANNA, "get", "pods", "x"), cluster) is not None


def test_a_cluster_role_can_be_given_in_one_namespace(cluster: SmallCluster) -> None:
    cluster.bind(ANNA, "ClusterRole", "edit", namespace="web")
    assert authorized(asked(ANNA, "create", "pods", namespace="web"), cluster) is None
    assert authorized(asked(ANNA, "create", "pods"), cluster) is not None
    assert authorized(asked(ANNA, "create", "roles", namespace="web"), cluster) is not None


def test_groups_and_service_accounts_are_subjects_too(cluster: SmallCluster) -> None:
    for number, subject in enumerate(
        ({"kind": "Group", "name": "operators"}, {"kind": "ServiceAccount", "name": "agent"})
    ):
        cluster.add(
            "rolebindings",
            {
                "metadata": {"name": f"binding-{number}", "namespace": "ns"},
                "subjects": [subject],
                "roleRef": {"kind": "ClusterRole", "name": "view"},
            },
        )
    for user in (ANNA, ACCOUNT):
        assert authorized(asked(user, "list", "pods", namespace="ns"), cluster) is None
    stranger = UserInfo(username="system:serviceaccount:other:agent")
    assert authorized(asked(stranger, "list", "pods", namespace="ns"), cluster) is not None


def test_a_missing_role_is_told(cluster: SmallCluster) -> None:
    cluster.bind(ANNA, "ClusterRole", "nothing")
    assert authorized(asked(ANNA, "list", "pods"), cluster) == (
        'User "anna" cannot list resource "pods" in API group "" in the namespace "default": '
        'RBAC: clusterrole.rbac.authorization.k8s.io "nothing" not found'
    )


@pytest.mark.parametrize(
    ("user", "path", "allowed"),
    [
        (ANONYMOUS, "/version", True),
        (ANONYMOUS, "/healthz", True),
        (ANONYMOUS, "/api", False),
        (ANNA, "/api", True),
        (ANNA, "/apis/resource.k8s.io/v1", True),
        (ANNA, "/openapi/v3", True),
        (ANNA, "/metrics", False),
    ],
)
def test_discovery_is_open_to_everybody_who_is_known(
    cluster: SmallCluster, user: UserInfo, path: str, allowed: bool
) -> None:
    if allowed:
        check_path_authorized(user, "get", path, cluster)
        return
    with pytest.raises(ApiError) as refusal:
        check_path_authorized(user, "get", path, cluster)
    assert str(refusal.value) == f'forbidden: User "{user.username}" cannot get path "{path}"'


@pytest.fixture
def nodes(cluster: SmallCluster) -> SmallCluster:
    """Two nodes, each with a pod, a claim of it and a slice."""
    for number in (1, 2):
        node = f"edge-{number}"
        claims = [{"name": "gpu", "resourceClaimName": f"claim-{number}"}]
        cluster.add_pod(
            f"pod-{number}",
            node,
            serviceAccountName=f"account-{number}",
            resourceClaims=claims,
            volumes=[
                {"name": "a", "configMap": {"name": f"map-{number}"}},
                {"name": "b", "projected": {"sources": [{"secret": {"name": f"key-{number}"}}]}},
            ],
        )
        slice_ = {"metadata": {"name": f"slice-{number}"}, "spec": {"nodeName": node}}
        cluster.add("resourceslices", slice_)
    return cluster


@pytest.mark.parametrize(
    ("plural", "prefix"),
    [
        ("pods", "pod"),
        ("resourceclaims", "claim"),
        ("configmaps", "map"),
        ("secrets", "key"),
        ("serviceaccounts", "account"),
        ("resourceslices", "slice"),
    ],
)
def test_a_kubelet_reads_what_its_own_pods_need(
    nodes: SmallCluster, plural: str, prefix: str
) -> None:
    assert authorized(asked(KUBELET, "get", plural, f"{prefix}-1"), nodes) is None
    for other in (f"{prefix}-2", "nothing"):
        sentence = authorized(asked(KUBELET, "get", plural, other), nodes)
        assert sentence is not None
        assert sentence.endswith(f": {NO_RELATION}")


def limited(field: str, value: str) -> dict[str, Any]:
    return {"query": {"fieldSelector": f"{field}={value}"}}


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (asked(KUBELET, "get", "nodes", "edge-1"), None),
        (asked(KUBELET, "list", "nodes", **limited("metadata.name", "edge-1")), None),
        (
            asked(KUBELET, "list", "nodes"),
            "node 'edge-1' cannot read all nodes, only its own Node object",
        ),
        (
            asked(KUBELET, "get", "nodes", "edge-2"),
            "node 'edge-1' cannot read 'edge-2', only its own Node object",
        ),
        (asked(KUBELET, "delete", "nodes", "edge-1"), ""),
        (asked(KUBELET, "patch", "nodes", "edge-2", subresource="status"), None),
        (asked(KUBELET, "watch", "pods", **limited("spec.nodeName", "edge-1")), None),
        (
            asked(KUBELET, "watch", "pods", **limited("spec.nodeName", "edge-2")),
            "can only list/watch pods with spec.nodeName field selector",
        ),
        (asked(KUBELET, "get", "pods", "pod-1", subresource="log"), ""),
        (asked(KUBELET, "patch", "pods", "pod-1"), ""),
        (asked(KUBELET, "patch", "pods", "pod-1", subresource="status"), None),
        (asked(KUBELET, "deletecollection", "pods"), ""),
        (
            asked(KUBELET, "list", "resourceclaims"),
            "can only get individual resources of this type",
        ),
        (asked(KUBELET, "create", "resourceslices"), None),
        (asked(KUBELET, "list", "resourceslices", **limited("spec.nodeName", "edge-1")), None),
        (
            asked(KUBELET, "deletecollection", "resourceslices"),
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        (asked(KUBELET, "update", "leases", "edge-1", namespace="kube-node-lease"), None),
        (
            asked(KUBELET, "update", "leases", "edge-2", namespace="kube-node-lease"),
            "can only access node lease with the same name as the requesting node",
        ),
        (
            asked(KUBELET, "get", "leases", "edge-1"),
            'can only access leases in the "kube-node-lease" system namespace',
        ),
        (
            asked(KUBELET, "list", "leases"),
            "can only get, create, update, patch, or delete a node lease",
        ),
        (asked(KUBELET, "list", "secrets"), "No Object name found"),
        (asked(KUBELET, "delete", "secrets", "key-1"), "can only read resources of this type"),
        (asked(KUBELET, "create", "serviceaccounts", "account-1", subresource="token"), None),
        (
            asked(KUBELET, "create", "serviceaccounts", "account-2", subresource="token"),
            NO_RELATION,
        ),
        (asked(KUBELET, "create", "events"), None),
        (asked(KUBELET, "list", "deviceclasses"), ""),
    ],
)
def test_a_kubelet_may_no_more_than_it_needs(
    nodes: SmallCluster, request_: Any, reason: str | None
) -> None:
    sentence = authorized(request_, nodes)
    if reason is None:
        assert sentence is None
    else:
        assert sentence is not None
        assert sentence.startswith('User "system:node:edge-1" cannot ')
        assert sentence.partition(": ")[2] == reason


def test_a_template_s_claim_is_its_pod_s(nodes: SmallCluster) -> None:
    pod = nodes.add_pod("pod-3", "edge-1")
    pod["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "made-1"}]}
    assert authorized(asked(KUBELET, "get", "resourceclaims", "made-1"), nodes) is None


def test_the_name_of_a_node_alone_makes_no_kubelet(nodes: SmallCluster) -> None:
    pretender = UserInfo(username="system:node:edge-1", groups=("system:authenticated",))
    assert authorized(asked(pretender, "get", "nodes", "edge-1"), nodes) is not None


def test_roles_add_to_what_a_kubelet_may(nodes: SmallCluster) -> None:
    nodes.grant(KUBELET, rule("list", "deviceclasses", DRA))
    assert authorized(asked(KUBELET, "list", "deviceclasses"), nodes) is None
