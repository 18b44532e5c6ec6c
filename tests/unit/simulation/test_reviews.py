from typing import Any

import pytest

from casaba.simulation.api_server.authentication import Authenticator
from casaba.simulation.api_server.requests import Object, UserInfo
from casaba.simulation.api_server.reviews import reviewed
from casaba.simulation.api_server.statuses import ApiError
from casaba.simulation.api_server.token_requests import requested_token
from casaba.simulation.authority import ClusterAuthority
from tests.unit.simulation.small_cluster import (
    ADMIN,
    ANNA,
    KUBELET,
    SmallCluster,
    asked,
    rule,
)

AUTHORITY = ClusterAuthority.create()
NOW_S = 1_700_000_000
HOUR_S = 3600
SELF = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
GET_PODS = {"verb": "get", "resource": "pods", "namespace": "default"}
GET_VERSION = {"verb": "get", "path": "/version"}
READER = rule("get", "pods")


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster()
    cluster.add_account("agent")
    cluster.add("nodes", {"metadata": {"name": "edge-1"}})
    cluster.add_pod("agent-x", "edge-1", serviceAccountName="agent")
    return cluster


async def review(cluster: SmallCluster, user: UserInfo, plural: str, spec: Object) -> Any:
    authenticator = Authenticator(AUTHORITY, cluster, clock=lambda: NOW_S)
    return await reviewed(
        asked(user, "create", plural), {"spec": spec}, authenticator=authenticator, objects=cluster
    )


async def test_who_am_i_tells_groups_and_extra(cluster: SmallCluster) -> None:
    user = UserInfo(username="u", uid="1", groups=("g",), extra={"k": ("v",)})
    answer = await review(cluster, user, "selfsubjectreviews", {})
    assert answer["status"]["userInfo"] == {
        "username": "u",
        "uid": "1",
        "groups": ["g"],
        "extra": {"k": ["v"]},
    }
    assert answer["metadata"]["creationTimestamp"]


async def test_a_token_review_tells_whose_a_token_is(cluster: SmallCluster) -> None:
    token = AUTHORITY.service_account_token(
        "default", "agent", "uid-agent", lifetime_s=HOUR_S, now_s=NOW_S
    )
    answer = await review(cluster, ADMIN, "tokenreviews", {"token": token})
    status = answer["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == "system:serviceaccount:default:agent"
    assert status["audiences"] == ["https://kubernetes.default.svc"]


async def test_a_token_review_tells_what_is_wrong(cluster: SmallCluster) -> None:
    answer = await review(cluster, ADMIN, "tokenreviews", {"token": "x"})
    assert answer["status"] == {"user": {}, "error": "invalid bearer token"}
    with pytest.raises(ApiError, match="token is required for TokenReview in authentication"):
        await review(cluster, ADMIN, "tokenreviews", {"token": ""})


async def test_can_i_answers_with_the_role(cluster: SmallCluster) -> None:
    plural, spec = "selfsubjectaccessreviews", {"resourceAttributes": GET_PODS}
    assert (await review(cluster, ANNA, plural, spec))["status"] == {"allowed": False}
    cluster.grant(ANNA, READER)
    answer = await review(cluster, ANNA, plural, spec)
    assert answer["kind"] == "SelfSubjectAccessReview"
    assert answer["spec"] == spec
    assert answer["status"]["allowed"] is True
    assert answer["status"]["reason"].startswith("RBAC: allowed by ClusterRoleBinding")
    assert answer["status"]["reason"].endswith('to User "anna"')


async def test_can_i_answers_for_paths(cluster: SmallCluster) -> None:
    spec = {"nonResourceAttributes": GET_VERSION}
    answer = await review(cluster, ANNA, "selfsubjectaccessreviews", spec)
    assert answer["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole '
        '"system:discovery" to Group "system:authenticated"',
    }


async def test_one_can_ask_for_others(cluster: SmallCluster) -> None:
    spec = {
        "user": KUBELET.username,
        "groups": list(KUBELET.groups),
        "resourceAttributes": {**GET_PODS, "name": "nothing"},
    }
    answer = await review(cluster, ADMIN, "subjectaccessreviews", spec)
    assert answer["status"] == {
        "allowed": False,
        "reason": "no relationship found between node 'edge-1' and this object",
    }


@pytest.mark.parametrize(
    ("plural", "spec", "field", "message"),
    [
        (
            "selfsubjectaccessreviews",
            {},
            "spec.resourceAttributes",
            "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must "
            "be specified",
        ),
        (
            "selfsubjectaccessreviews",
            {"resourceAttributes": GET_PODS, "nonResourceAttributes": GET_VERSION},
            "spec.nonResourceAttributes",
            'Invalid value: {"Path":"/version","Verb":"get"}: cannot be specified in combination '
            "with resourceAttributes",
        ),
        (
            "subjectaccessreviews",
            {"resourceAttributes": GET_PODS},
            "spec.user",
            'Invalid value: "": at least one of user or group must be specified',
        ),
    ],
)
async def test_a_question_that_makes_no_sense_is_422(
    cluster: SmallCluster, plural: str, spec: Object, field: str, message: str
) -> None:
    with pytest.raises(ApiError) as refusal:
        await review(cluster, ANNA, plural, spec)
    status = refusal.value.status
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"] == f'.authorization.k8s.io "" is invalid: {field}: {message}'
    assert [cause["field"] for cause in status["details"]["causes"]] == [field]


def token(
    cluster: SmallCluster,
    spec: Object,
    *,
    user: UserInfo = ADMIN,
    account: str = "agent",
    **metadata: Any,
) -> Any:
    return requested_token(
        asked(user, "create", "serviceaccounts", account, subresource="token"),
        {"metadata": metadata, "spec": spec},
        authority=AUTHORITY,
        objects=cluster,
        now_s=NOW_S,
    )


def bound(kind: str, name: str, **fields: str) -> Object:
    return {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name, **fields}}


def test_a_token_request_has_defaults(cluster: SmallCluster) -> None:
    answer = token(cluster, {})
    assert answer["metadata"] == {
        "name": "agent",
        "namespace": "default",
        "uid": "uid-agent",
        "creationTimestamp": "2023-11-14T22:13:20Z",
    }
    assert answer["spec"] == {
        "audiences": ["https://kubernetes.default.svc"],
        "expirationSeconds": HOUR_S,
        "boundObjectRef": None,
    }
    assert answer["status"]["expirationTimestamp"] == "2023-11-14T23:13:20Z"
    claims = AUTHORITY.tokens.claims(answer["status"]["token"]) or {}
    assert claims["exp"] == NOW_S + HOUR_S


def test_a_token_bound_to_a_pod_names_its_node(cluster: SmallCluster) -> None:
    answer = token(cluster, bound("Pod", "agent-x", uid="uid-agent-x"))
    claims = AUTHORITY.tokens.claims(answer["status"]["token"]) or {}
    assert claims["kubernetes.io"] == {
        "namespace": "default",
        "node": {"name": "edge-1", "uid": "uid-edge-1"},
        "pod": {"name": "agent-x", "uid": "uid-agent-x"},
        "serviceaccount": {"name": "agent", "uid": "uid-agent"},
    }


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        (
            {"expirationSeconds": 10},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
            "value: 10: may not specify a duration less than 10 minutes",
        ),
        (
            {"expirationSeconds": 1 << 33},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
            "value: 8589934592: may not specify a duration larger than 2^32 seconds",
        ),
        (bound("Pod", "nope"), 404, 'pods "nope" not found'),
        (
            bound("Node", "edge-1", uid="x"),
            409,
            'Operation cannot be fulfilled on Node "edge-1": the UID in the bound object reference '
            "(x) does not match the UID in record. The object might have been deleted and then "
            "recreated",
        ),
        (bound("Foo", "x"), 400, "cannot bind token to object of type /v1, Kind=Foo"),
    ],
)
def test_a_token_request_that_can_not_be_met_is_refused(
    cluster: SmallCluster, spec: Object, code: int, message: str
) -> None:
    with pytest.raises(ApiError) as refusal:
        token(cluster, spec)
    assert (refusal.value.code, str(refusal.value)) == (code, message)


def test_a_token_request_names_its_account_or_nobody(cluster: SmallCluster) -> None:
    token(cluster, {}, name="agent")
    with pytest.raises(ApiError, match="must match the service account name if specified"):
        token(cluster, {}, name="other")
    with pytest.raises(ApiError, match='serviceaccounts "nope" not found'):
        token(cluster, {}, account="nope")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({}, "node requested token not bound to a pod"),
        (
            bound("Pod", "agent-x"),
            "node requested token with a pod binding without a uid",
        ),
        (
            bound("Pod", "other", uid="uid-other"),
            "node requested token bound to a pod scheduled on a different node",
        ),
    ],
)
def test_a_kubelet_gets_tokens_for_its_own_pods_only(
    cluster: SmallCluster, spec: Object, why: str
) -> None:
    cluster.add_pod("other", "edge-2")
    token(cluster, bound("Pod", "agent-x", uid="uid-agent-x"), user=KUBELET)
    with pytest.raises(ApiError) as refusal:
        token(cluster, spec, user=KUBELET)
    assert str(refusal.value) == f'serviceaccounts "agent" is forbidden: {why}'
