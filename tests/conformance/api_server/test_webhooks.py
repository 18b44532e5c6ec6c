"""Admission webhooks: when they are called, what they are asked, and what their answers do."""

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from casaba.simulation.authority import ClusterAuthority
from tests.conformance.api_server.door import ApiDoor, Object
from tests.conformance.api_server.objects import config_map, made, made_config_map, pod
from tests.conformance.api_server.webhook_server import (
    ADDRESS,
    MUTATING,
    VALIDATING,
    Respond,
    Webhook,
    allow,
    listener_in,
    patching,
    registered,
    rule,
    webhook_at,
)

ADD_DATA = {"op": "add", "path": "/data", "value": {"from": "webhook"}}


@pytest.fixture
async def webhook(on_real: bool, request: pytest.FixtureRequest) -> AsyncIterator[Webhook]:
    """A webhook where the server under test can reach it."""
    namespace = None
    if on_real:
        namespace = request.getfixturevalue("bed").settings.network_namespace("cloud")
    async with webhook_at(listener_in(namespace)) as webhook:
        yield webhook


def denying(**status: Any) -> Respond:
    """Says no."""
    return lambda request: {"allowed": False, **({"status": status} if status else {})}


async def create(api: ApiDoor, name: str = "one", **metadata: Any) -> Any:
    """Try to create a ConfigMap, without storing it."""
    return await api.post(f"{api.core('configmaps')}?dryRun=All", config_map(name, **metadata))


async def test_a_mutating_webhook_changes_what_is_stored(api: ApiDoor, webhook: Webhook) -> None:
    async with registered(api, webhook, MUTATING, webhook.entry("/add", patching(ADD_DATA))):
        await made_config_map(api)
    stored = (await api.get(api.core("configmaps", "one"))).object()
    assert stored["data"] == {"from": "webhook"}


async def test_a_validating_webhook_sees_what_the_mutating_ones_made(
    api: ApiDoor, webhook: Webhook
) -> None:
    async with registered(api, webhook, VALIDATING, webhook.entry("/see"), name="see"):
        async with registered(api, webhook, MUTATING, webhook.entry("/add", patching(ADD_DATA))):
            await made_config_map(api)
    (seen,) = webhook.seen("/see")
    assert seen["object"]["data"] == {"from": "webhook"}


async def test_the_review_of_a_create_tells_everything(api: ApiDoor, webhook: Webhook) -> None:
    path = f"{api.core('configmaps')}?dryRun=All&fieldManager=tester&fieldValidation=Strict"
    async with registered(api, webhook, MUTATING, webhook.entry("/see")):
        (await api.post(path, config_map("one", {"a": "b"}))).object(201)
    (seen,) = webhook.seen("/see")
    assert len(seen.pop("uid")) == 36
    assert "system:masters" in seen.pop("userInfo")["groups"]
    seen["object"]["metadata"].pop("managedFields", None)
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    assert seen == {
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "one",
        "namespace": api.namespace,
        "operation": "CREATE",
        "object": {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": "one", "namespace": api.namespace},
            "data": {"a": "b"},
        },
        "oldObject": None,
        "dryRun": True,
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "dryRun": ["All"],
            "fieldManager": "tester",
            "fieldValidation": "Strict",
        },
    }


async def test_a_generated_name_is_not_known_to_mutating_webhooks(
    api: ApiDoor, webhook: Webhook
) -> None:
    body = {"metadata": {"generateName": "some-"}}
    async with registered(api, webhook, MUTATING, webhook.entry("/early"), name="early"):
        async with registered(api, webhook, VALIDATING, webhook.entry("/late")):
            made_ = (await api.post(f"{api.core('configmaps')}?dryRun=All", body)).object(201)
    (early,), (late,) = webhook.seen("/early"), webhook.seen("/late")
    assert "name" not in early
    assert not {"name", "uid", "creationTimestamp"} & early["object"]["metadata"].keys()
    assert late["object"]["metadata"]["name"] == made_["metadata"]["name"]


async def test_an_update_shows_the_object_before_and_after(api: ApiDoor, webhook: Webhook) -> None:
    old = await made_config_map(api, data={"a": "1"})
    async with registered(api, webhook, VALIDATING, webhook.entry("/see")):
        (await api.patch(api.core("configmaps", "one"), {"data": {"a": "2"}})).object()
    (seen,) = webhook.seen("/see")
    assert (seen["operation"], seen["name"]) == ("UPDATE", "one")
    assert seen["options"] == {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert (seen["oldObject"]["data"], seen["object"]["data"]) == ({"a": "1"}, {"a": "2"})
    assert seen["object"]["metadata"]["uid"] == old["metadata"]["uid"]
    assert seen["dryRun"] is False


async def test_a_deletion_shows_the_old_object_only(api: ApiDoor, webhook: Webhook) -> None:
    await made_config_map(api, data={"a": "1"})
    async with registered(api, webhook, VALIDATING, webhook.entry("/see")):
        options = {"propagationPolicy": "Background"}
        (await api.delete(api.core("configmaps", "one"), options)).object()
        (await api.delete(api.core("configmaps", "one"))).refused(404, "NotFound")
    (seen,) = webhook.seen("/see")
    assert (seen["operation"], seen["name"], seen["object"]) == ("DELETE", "one", None)
    assert seen["oldObject"]["data"] == {"a": "1"}
    assert seen["options"] == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "propagationPolicy": "Background",
    }


async def test_a_create_by_apply_is_a_create(api: ApiDoor, webhook: Webhook) -> None:
    path = f"{api.core('configmaps', 'one')}?fieldManager=me"
    async with registered(api, webhook, VALIDATING, webhook.entry("/see")):
        (await api.apply(path, config_map("one"))).object(201)
        (await api.apply(path, config_map("one", {"a": "b"}))).object()
    assert [seen["operation"] for seen in webhook.seen("/see")] == ["CREATE", "UPDATE"]
    assert webhook.seen("/see")[0]["options"]["fieldManager"] == "me"


async def test_a_subresource_is_told_and_has_its_own_rules(api: ApiDoor, webhook: Webhook) -> None:
    await made(api, api.core("pods"), pod("one"))
    main = webhook.entry("/main", rules=[rule("pods")])
    all_ = webhook.entry("/all", rules=[rule("pods/*")])
    async with registered(api, webhook, VALIDATING, main, all_):
        patch = {"status": {"message": "well"}}
        (await api.patch(f"{api.core('pods', 'one')}/status", patch)).object()
    assert webhook.seen("/main") == []
    (seen,) = webhook.seen("/all")
    assert (seen["subResource"], seen["requestSubResource"]) == ("status", "status")


async def test_an_eviction_is_the_creation_of_one(api: ApiDoor, webhook: Webhook) -> None:
    await made(api, api.core("pods"), pod("one"))
    entry = webhook.entry("/see", rules=[rule("pods/eviction", "pods")])
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one"}}
    async with registered(api, webhook, VALIDATING, entry):
        (await api.post(f"{api.core('pods', 'one')}/eviction", eviction)).object(201)
    (seen,) = webhook.seen("/see")
    assert seen["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert (seen["operation"], seen["subResource"]) == ("CREATE", "eviction")
    assert (seen["name"], seen["object"]["metadata"]["name"]) == ("one", "one")
    assert seen["oldObject"] is None


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        ({}, 400, " without explanation"),
        ({"message": "because", "code": 418, "reason": "Teapot"}, 418, ": because"),
        ({"reason": "Forbidden"}, 400, ": Forbidden"),
        ({"message": "because", "code": 200, "status": "Success"}, 400, ": because"),
    ],
)
async def test_a_refusal_gives_its_reason(
    api: ApiDoor, webhook: Webhook, status: Object, code: int, message: str
) -> None:
    entry = webhook.entry("/deny", denying(**status))
    async with registered(api, webhook, VALIDATING, entry):
        answer = await create(api)
    assert answer.status == answer.json["code"] == code
    denied = 'admission webhook "deny.webhooks.example" denied the request'
    assert answer.json["message"] == denied + message
    assert answer.json.get("reason") == status.get("reason")
    assert "details" not in answer.json


async def test_what_is_refused_is_not_stored(api: ApiDoor, webhook: Webhook) -> None:
    async with registered(api, webhook, VALIDATING, webhook.entry("/deny", denying())):
        await api.post(api.core("configmaps"), config_map("one"))
    (await api.get(api.core("configmaps", "one"))).refused(404, "NotFound")


@pytest.mark.parametrize(
    ("response", "why"),
    [
        ({"allowed": True, "uid": "x"}, 'expected response.uid="{uid}", got "x"'),
        (
            {"allowed": True, "patch": "W3sib3AiOiJ0ZXN0In1d"},
            "webhook returned response.patch but not response.patchType",
        ),
        (
            {"allowed": True, "patchType": "JSONPatch"},
            "webhook returned response.patchType but not response.patch",
        ),
    ],
)
async def test_an_answer_that_makes_no_sense_is_a_failure(
    api: ApiDoor, webhook: Webhook, response: Object, why: str
) -> None:
    async with registered(api, webhook, MUTATING, webhook.entry("/odd", lambda _: response)):
        message = (await create(api)).refused(500, "InternalError")
    (seen,) = webhook.seen("/odd")
    assert message == (
        'Internal error occurred: failed calling webhook "odd.webhooks.example": received invalid '
        f"webhook response: {why.format(uid=seen['uid'])}"
    )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            web.Response(status=500, text="broken"),
            'an error on the server ("broken") has prevented the request from succeeding',
        ),
        (web.Response(status=404), "the server could not find the requested resource"),
        (web.Response(status=503), "the server is currently unable to handle the request"),
        (
            web.Response(status=302),
            "the server responded with the status code 302 but did not return more information",
        ),
        (web.Response(text="<html>"), "couldn't get version/kind; json parse error:"),
        (
            web.Response(text='{"apiVersion": "v1", "kind": "Pod"}'),
            'no kind "Pod" is registered for version "v1"',
        ),
    ],
)
async def test_an_http_answer_that_is_no_review_is_a_failure(
    api: ApiDoor, webhook: Webhook, answer: web.Response, why: str
) -> None:
    webhook.raw["/odd"] = answer
    async with registered(api, webhook, VALIDATING, webhook.entry("/odd")):
        message = (await create(api)).refused(500, "InternalError")
    assert message.startswith(
        'Internal error occurred: failed calling webhook "odd.webhooks.example": failed to call '
        f"webhook: {why}"
    )


async def test_a_review_without_a_response_is_a_failure(api: ApiDoor, webhook: Webhook) -> None:
    webhook.raw["/odd"] = web.Response(text="{}")
    async with registered(api, webhook, VALIDATING, webhook.entry("/odd")):
        message = (await create(api)).refused(500, "InternalError")
    assert message.endswith("received invalid webhook response: webhook response was absent")


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/nothing/here", "value": 1},
        {"op": "test", "path": "/metadata/name", "value": "x"},
        {"op": "add", "path": "/data", "value": 7},
    ],
    ids=lambda operation: operation["op"],
)
async def test_a_patch_that_does_not_fit_is_a_failure(
    api: ApiDoor, webhook: Webhook, operation: Object
) -> None:
    async with registered(api, webhook, MUTATING, webhook.entry("/odd", patching(operation))):
        message = (await create(api)).refused(500, "InternalError")
    assert message.startswith("Internal error occurred: ")


async def test_a_patch_may_not_make_an_invalid_object(api: ApiDoor, webhook: Webhook) -> None:
    labels = {"op": "add", "path": "/metadata/labels", "value": {"a": "b c"}}
    async with registered(api, webhook, MUTATING, webhook.entry("/odd", patching(labels))):
        message = (await create(api)).refused(422, "Invalid")
    assert message.startswith('ConfigMap "one" is invalid: metadata.labels: Invalid value: "b c"')


def free_port() -> int:
    with socket.create_server((ADDRESS, 0)) as bound:
        return int(bound.getsockname()[1])


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_the_failure_policy_decides_what_a_dead_webhook_means(
    api: ApiDoor, webhook: Webhook, policy: str
) -> None:
    url = f"https://{ADDRESS}:{free_port()}/x"
    entry = webhook.entry("/dead", clientConfig={"url": url}, failurePolicy=policy)
    async with registered(api, webhook, VALIDATING, entry):
        answer = await create(api)
    if policy == "Ignore":
        assert answer.status == 201
        return
    where = url.removeprefix("https://").removesuffix("/x")
    why = (
        'failed calling webhook "dead.webhooks.example": failed to call webhook: Post '
        f'"{url}?timeout=10s": dial tcp {where}: connect: connection refused'
    )
    assert answer.refused(500, "InternalError") == f"Internal error occurred: {why}"
    assert answer.json["details"] == {"causes": [{"message": why}]}


async def test_a_slow_webhook_has_its_time_limit(api: ApiDoor, webhook: Webhook) -> None:
    webhook.held["/slow"] = asyncio.Event()
    entry = webhook.entry("/slow", timeoutSeconds=1)
    async with registered(api, webhook, VALIDATING, entry):
        message = (await create(api)).refused(500, "InternalError")
    assert message.endswith(f'Post "{webhook.url}/slow?timeout=1s": context deadline exceeded')


async def test_another_authority_s_webhook_is_not_trusted(api: ApiDoor, webhook: Webhook) -> None:
    other = base64.b64encode(ClusterAuthority.create().authority_pem.encode()).decode()
    config = webhook.client_config("/x") | {"caBundle": other}
    entry = webhook.entry("/x", clientConfig=config)
    async with registered(api, webhook, VALIDATING, entry):
        message = (await create(api)).refused(500, "InternalError")
    assert "tls: failed to verify certificate: x509: certificate signed by unknown" in message
    assert webhook.seen("/x") == []


async def test_a_webhook_of_another_name_is_not_trusted(api: ApiDoor, webhook: Webhook) -> None:
    config = webhook.client_config("/x")
    config["url"] = config["url"].replace(ADDRESS, "localhost")
    entry = webhook.entry("/x", clientConfig=config)
    async with registered(api, webhook, VALIDATING, entry):
        message = (await create(api)).refused(500, "InternalError")
    assert "tls: failed to verify certificate: x509: certificate is not valid for" in message
    assert webhook.seen("/x") == []


async def test_a_service_that_is_not_there_is_a_failure(api: ApiDoor, webhook: Webhook) -> None:
    service = {"namespace": api.namespace, "name": "nothing", "path": "/x"}
    config = {"service": service, "caBundle": webhook.client_config("/x")["caBundle"]}
    entry = webhook.entry("/x", clientConfig=config)
    async with registered(api, webhook, VALIDATING, entry):
        message = (await create(api)).refused(500, "InternalError")
    url = f"https://nothing.{api.namespace}.svc:443/x?timeout=10s"
    assert message.endswith(f'Post "{url}": service "nothing" not found')


async def test_a_webhook_may_want_other_operations(api: ApiDoor, webhook: Webhook) -> None:
    entries = [
        webhook.entry(f"/{name}", rules=[rule("configmaps", operations=operation)])
        for name, operation in (("c", "CREATE"), ("u", "UPDATE"), ("d", "DELETE"))
    ]
    async with registered(api, webhook, VALIDATING, *entries):
        await made_config_map(api)
        await api.patch(api.core("configmaps", "one"), {"data": {"a": "b"}})
        await api.delete(api.core("configmaps", "one"))
    called = [path for path, _ in webhook.requests if not path.startswith("/probe")]
    assert called == ["/c", "/u", "/d"]


async def test_an_object_selector_looks_at_both_states(api: ApiDoor, webhook: Webhook) -> None:
    selector = {"matchLabels": {"chosen": "yes"}}
    async with registered(api, webhook, VALIDATING, webhook.entry("/see", objectSelector=selector)):
        await made_config_map(api)
        for chosen in ("yes", "no", "never"):
            patch = {"metadata": {"labels": {"chosen": chosen}}}
            (await api.patch(api.core("configmaps", "one"), patch)).object()
    labels = [seen["object"]["metadata"]["labels"]["chosen"] for seen in webhook.seen("/see")]
    assert labels == ["yes", "no"]


async def test_a_namespace_selector_keeps_webhooks_out(api: ApiDoor, webhook: Webhook) -> None:
    other = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn"}]}
    other["matchExpressions"][0]["values"] = [api.namespace]  # type: ignore[assignment]
    nobody = {"key": api.name("nobody"), "operator": "Exists"}
    selector = {"matchExpressions": [*other["matchExpressions"], nobody]}
    entry = webhook.entry("/see", namespaceSelector=selector)
    async with registered(api, webhook, VALIDATING, entry):
        assert (await create(api)).status == 201
    assert webhook.seen("/see") == []


@pytest.mark.parametrize(
    ("scope", "called"), [("*", True), ("Cluster", True), ("Namespaced", False)]
)
async def test_a_namespace_is_a_cluster_wide_object_inside_itself(
    api: ApiDoor, webhook: Webhook, scope: str, called: bool
) -> None:
    entry = webhook.entry("/see", rules=[rule("namespaces", scope=scope)])
    async with registered(api, webhook, VALIDATING, entry):
        patch = {"metadata": {"labels": {"scope": "tested"}}}
        (await api.patch(f"/api/v1/namespaces/{api.namespace}", patch)).object()
    assert [seen["namespace"] for seen in webhook.seen("/see")] == [api.namespace] * called


@pytest.mark.parametrize(
    ("expression", "called"),
    [
        ("true", True),
        ("object.metadata.name == 'one' && oldObject == null", True),
        ("has(object.data) && has(object.data.a)", False),
        ("!has(object.metadata.labels) || object.metadata.labels['x'] != 'y'", True),
        ("request.operation == 'CREATE' && request.resource.resource == 'configmaps'", True),
        ("'system:masters' in request.userInfo.groups && request.dryRun", True),
        ("request.userInfo.username == 'nobody'", False),
        ("quantity('1Gi').isGreaterThan(quantity('1M'))", True),
    ],
)
async def test_match_conditions_decide_whether_a_webhook_is_called(
    api: ApiDoor, webhook: Webhook, expression: str, called: bool
) -> None:
    condition = {"name": "condition", "expression": expression}
    entry = webhook.entry("/see", matchConditions=[condition])
    async with registered(api, webhook, VALIDATING, entry):
        assert (await create(api)).status == 201
    assert len(webhook.seen("/see")) == called


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        (
            ["object.nope == 1"],
            "expression 'object.nope == 1' resulted in error: no such key: nope",
        ),
        (["1/0 == 1"], "expression '1/0 == 1' resulted in error: division by zero"),
        (
            ["object.nope == 1", "object.neither == 1"],
            "[expression 'object.nope == 1' resulted in error: no such key: nope, "
            "expression 'object.neither == 1' resulted in error: no such key: neither]",
        ),
        (["object.nope == 1", "false"], None),
    ],
)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_condition_that_fails_follows_the_failure_policy(
    api: ApiDoor, webhook: Webhook, conditions: list[str], why: str | None, policy: str
) -> None:
    told = [{"name": f"c{i}", "expression": each} for i, each in enumerate(conditions)]
    entry = webhook.entry("/see", matchConditions=told, failurePolicy=policy)
    async with registered(api, webhook, VALIDATING, entry):
        answer = await create(api)
    assert webhook.seen("/see") == []
    if policy == "Ignore" or why is None:
        assert answer.status == 201
    else:
        assert answer.refused(403, "Forbidden") == f'configmaps "one" is forbidden: {why}'


async def test_mutating_webhooks_are_called_by_the_names_of_their_configurations(
    api: ApiDoor, webhook: Webhook
) -> None:
    async with registered(api, webhook, MUTATING, webhook.entry("/b"), name="b"):
        async with registered(
            api, webhook, MUTATING, webhook.entry("/a1"), webhook.entry("/a2"), name="a"
        ):
            await create(api)
    called = [path for path, _ in webhook.requests if not path.startswith("/probe")]
    assert called == ["/a1", "/a2", "/b"]


async def test_a_webhook_is_called_again_if_others_changed_the_object_after_it(
    api: ApiDoor, webhook: Webhook
) -> None:
    def counting(key: str) -> Respond:
        def respond(request: Object) -> Object:
            data = request["object"].get("data") or {}
            data = {**data, key: str(int(data.get(key, "0")) + 1)}
            return patching({"op": "add", "path": "/data", "value": data})(request)

        return respond

    again = {"reinvocationPolicy": "IfNeeded"}
    entries = [
        webhook.entry("/one", counting("one"), **again),
        webhook.entry("/two", counting("two")),
        webhook.entry("/three", counting("three"), **again),
        webhook.entry("/four", allow, **again),
    ]
    async with registered(api, webhook, MUTATING, *entries):
        made_ = (await create(api)).object(201)
    called = [path for path, _ in webhook.requests if not path.startswith("/probe")]
    assert called == ["/one", "/two", "/three", "/four", "/one", "/three", "/four"]
    assert made_["data"] == {"one": "2", "two": "1", "three": "2"}


@pytest.mark.parametrize("allowed", [True, False])
async def test_warnings_reach_the_client(api: ApiDoor, webhook: Webhook, allowed: bool) -> None:
    response = {"allowed": allowed, "warnings": ["one", "one", 'qu"ote', "line\nbreak"]}
    async with registered(api, webhook, VALIDATING, webhook.entry("/warn", lambda _: response)):
        answer = await create(api)
    assert answer.status == (201 if allowed else 400)
    assert answer.warnings == ["one", 'qu\\"ote']


async def test_webhooks_can_not_protect_themselves(api: ApiDoor, webhook: Webhook) -> None:
    own = {"matchLabels": {"own": api.prefix}}
    everything = webhook.entry(
        "/deny", denying(), rules=[rule("*", group="*")], objectSelector=own, namespaceSelector={}
    )
    async with registered(api, webhook, VALIDATING, everything):
        path = f"/apis/admissionregistration.k8s.io/v1/{VALIDATING}"
        other = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": api.name("other"), "labels": {"own": api.prefix}},
        }
        (await api.post(f"{path}?dryRun=All", other)).object(201)
        answer = await api.post(
            "/apis/resource.k8s.io/v1/deviceclasses?dryRun=All",
            {"metadata": {"name": api.name("class"), "labels": {"own": api.prefix}}, "spec": {}},
        )
    assert answer.status == 400
    assert len(webhook.seen("/deny")) == 1


async def test_an_invalid_object_never_reaches_a_validating_webhook(
    api: ApiDoor, webhook: Webhook
) -> None:
    async with registered(api, webhook, VALIDATING, webhook.entry("/see")):
        (await create(api, name="NOT-VALID")).refused(422, "Invalid")
    assert webhook.seen("/see") == []
