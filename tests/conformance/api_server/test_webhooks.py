"""Admission webhooks: what their answers do, and in which order they are called."""

import pytest

from tests.conformance.api_server.door import ApiDoor, Object
from tests.conformance.api_server.objects import config_map, made_config_map
from tests.conformance.api_server.webhook_server import (
    MUTATING,
    VALIDATING,
    Respond,
    Webhook,
    allow,
    create,
    denying,
    patching,
    registered,
    rule,
)

ADD_DATA = {"op": "add", "path": "/data", "value": {"from": "webhook"}}


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


async def test_mutating_webhooks_are_called_by_the_names_of_their_configurations(
    api: ApiDoor, webhook: Webhook
) -> None:
    async with registered(api, webhook, MUTATING, webhook.entry("/b"), name="b"):
        async with registered(
            api, webhook, MUTATING, webhook.entry("/a1"), webhook.entry("/a2"), name="a"
        ):
            await create(api)
    assert webhook.called == ["/a1", "/a2", "/b"]


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
    assert webhook.called == ["/one", "/two", "/three", "/four", "/one", "/three", "/four"]
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
