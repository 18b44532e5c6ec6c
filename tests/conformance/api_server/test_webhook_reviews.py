"""What an admission webhook is asked: the request of its review."""

from tests.conformance.api_server.door import ApiDoor
from tests.conformance.api_server.objects import config_map, made, made_config_map, pod
from tests.conformance.api_server.webhook_server import (
    MUTATING,
    VALIDATING,
    Webhook,
    registered,
    rule,
)


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
