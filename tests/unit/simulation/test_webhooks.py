import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.simulation.api_server.admission_reviews import (
    BadAnswer,
    patch_operations,
    read_answer,
    refusal,
    review_request,
)
from casaba.simulation.api_server.attributes import Attributes, attributes_of
from casaba.simulation.api_server.match_conditions import matched
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.webhook_matching import concerns, selects
from tests.unit.simulation.small_cluster import ADMIN, SmallCluster, asked

CONFIG_MAP = {"metadata": {"name": "one", "labels": {"a": "b"}}}


def attributes(verb: str = "create", plural: str = "configmaps", **fields: Any) -> Attributes:
    object_, old = fields.pop("object_", CONFIG_MAP), fields.pop("old", None)
    return attributes_of(asked(ADMIN, verb, plural, "one", **fields), object_, old)


def hook(**fields: Any) -> Object:
    rule = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": ["*"],
        "resources": ["*/*"],
        **fields.pop("rule", {}),
    }
    return {"name": "x", "rules": [rule], **fields}


@pytest.mark.parametrize(
    ("rule", "asked_", "concerned"),
    [
        ({}, attributes(), True),
        ({"resources": ["*"]}, attributes(), True),
        ({"resources": ["*"]}, attributes("patch", "pods", subresource="status"), False),
        ({"resources": ["*/status"]}, attributes("patch", "pods", subresource="status"), True),
        ({"resources": ["pods/*"]}, attributes("patch", "pods"), True),
        ({"resources": ["pods/log", "pods"]}, attributes("patch", "pods"), True),
        ({"apiGroups": ["apps"]}, attributes(), False),
        ({"apiGroups": [""]}, attributes(), True),
        ({"apiVersions": ["v2"]}, attributes(), False),
        ({"operations": ["DELETE"]}, attributes(), False),
        ({"operations": ["DELETE"]}, attributes("deletecollection"), True),
        ({"operations": ["UPDATE"]}, attributes("patch", old=CONFIG_MAP), True),
        ({"operations": ["CREATE"]}, attributes("patch"), True),
        ({"scope": "Namespaced"}, attributes(), True),
        ({"scope": "Cluster"}, attributes(), False),
        ({"scope": "Cluster"}, attributes(plural="deviceclasses"), True),
        ({"scope": "Namespaced"}, attributes(plural="deviceclasses"), False),
        ({}, attributes(plural="mutatingwebhookconfigurations"), False),
    ],
)
def test_rules_say_what_a_webhook_is_for(rule: Object, asked_: Attributes, concerned: bool) -> None:
    assert concerns(hook(rule=rule), asked_, SmallCluster()) is concerned


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"matchLabels": {"a": "b"}}, True),
        ({"matchLabels": {"a": "c"}}, False),
        ({"matchLabels": {"a": "b", "c": "d"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "b"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, False),
        ({"matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["b"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_selectors_select_by_labels(selector: Object, selected: bool) -> None:
    assert selects(selector, {"a": "b"}) is selected


def test_the_labels_of_a_namespace_choose_for_what_is_inside() -> None:
    cluster = SmallCluster()
    cluster.add_namespace("web", labels={"team": "web"})
    selector = hook(namespaceSelector={"matchLabels": {"team": "web"}})
    assert concerns(selector, attributes(namespace="web"), cluster)
    assert not concerns(selector, attributes(), cluster)
    assert concerns(selector, attributes(plural="deviceclasses"), cluster)


def test_a_new_namespace_is_chosen_by_its_own_labels() -> None:
    new = {"metadata": {"name": "one", "labels": {"team": "web"}}}
    selector = hook(namespaceSelector={"matchLabels": {"team": "web"}})
    assert concerns(selector, attributes(plural="namespaces", object_=new), SmallCluster())


def test_a_condition_that_can_not_be_evaluated_is_an_error() -> None:
    conditions = [{"name": "c", "expression": "objekt.x"}]
    result = matched(conditions, {"object": CONFIG_MAP})
    assert not result.matches
    assert len(result.errors) == 1
    assert "undeclared reference to 'objekt" in result.errors[0]


def test_a_subresource_s_object_keeps_its_own_kind() -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one"}}
    told = review_request(attributes(plural="pods", subresource="eviction", object_=eviction))
    assert told["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert told["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert told["subResource"] == "eviction"


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b'{"propagationPolicy": "Orphan"}'])
def test_options_of_a_deletion_never_fail(body: bytes) -> None:
    told = review_request(attributes("delete", object_=None, old=CONFIG_MAP, body=body))
    assert told["options"]["kind"] == "DeleteOptions"
    assert told["object"] is None


def answer(**response: Any) -> bytes:
    return json.dumps({"response": {"uid": "u", "allowed": True, **response}}).encode()


def test_a_validating_webhook_may_not_patch() -> None:
    body = answer(patch="W10=", patchType="JSONPatch")
    with pytest.raises(BadAnswer, match=r"validating webhook may not return response\.patch"):
        read_answer(body, "u", may_patch=False)


@pytest.mark.parametrize("patch", ["e30=", "eA=="])
def test_a_patch_must_be_a_list(patch: str) -> None:
    read = read_answer(answer(patch=patch, patchType="JSONPatch"), "u", may_patch=True)
    with pytest.raises(BadAnswer, match="undecodable patch"):
        patch_operations(read)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
RESPONSES = st.dictionaries(
    st.sampled_from(["uid", "allowed", "status", "patch", "patchType", "warnings"]), JSON
)
REVIEWS = st.fixed_dictionaries(
    {}, optional={"apiVersion": JSON, "kind": JSON, "response": RESPONSES | JSON}
)


@given(st.binary(max_size=50) | REVIEWS.map(lambda review: json.dumps(review).encode()))
def test_whatever_a_webhook_answers_is_understood_or_a_bad_answer(body: bytes) -> None:
    try:
        read = read_answer(body, "u", may_patch=True)
        patch_operations(read)
    except BadAnswer:
        return
    error = refusal("x", read.status)
    assert error.code >= 400
    json.dumps(error.status)


@given(st.dictionaries(st.sampled_from(["code", "message", "reason", "details"]), JSON))
def test_whatever_reason_a_webhook_gives_the_client_gets_a_refusal(status: Object) -> None:
    error = refusal("x", status)
    assert error.code == error.status["code"] >= 400
    assert error.status["message"].startswith('admission webhook "x" denied the request')
