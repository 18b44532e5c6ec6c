"""Which writes an admission webhook is called for: rules, selectors and conditions."""

import pytest

from tests.conformance.api_server.door import ApiDoor
from tests.conformance.api_server.objects import made_config_map
from tests.conformance.api_server.webhook_server import (
    VALIDATING,
    Webhook,
    create,
    registered,
    rule,
)


async def test_a_webhook_may_want_other_operations(api: ApiDoor, webhook: Webhook) -> None:
    entries = [
        webhook.entry(f"/{name}", rules=[rule("configmaps", operations=operation)])
        for name, operation in (("c", "CREATE"), ("u", "UPDATE"), ("d", "DELETE"))
    ]
    async with registered(api, webhook, VALIDATING, *entries):
        await made_config_map(api)
        await api.patch(api.core("configmaps", "one"), {"data": {"a": "b"}})
        await api.delete(api.core("configmaps", "one"))
    assert webhook.called == ["/c", "/u", "/d"]


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


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("1", "must evaluate to bool but got int"),
        ("object.metadata", "must evaluate to bool but got dyn"),
        (
            "nonsense",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nonsense' "
            "(in container '')\n | nonsense\n | ^",
        ),
        (
            "true ||",
            "compilation failed: ERROR: <input>:1:8: Syntax error: mismatched input '<EOF>' "
            "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, "
            "NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | true ||\n | .......^",
        ),
    ],
)
async def test_a_condition_that_is_wrong_is_refused_when_it_is_written(
    api: ApiDoor, webhook: Webhook, expression: str, why: str
) -> None:
    entry = webhook.entry("/x", matchConditions=[{"name": "c", "expression": expression}])
    body = {"metadata": {"name": api.name("bad")}, "webhooks": [entry]}
    path = f"/apis/admissionregistration.k8s.io/v1/{VALIDATING}?dryRun=All"
    message = (await api.post(path, body)).refused(422, "Invalid")
    assert message == (
        f'ValidatingWebhookConfiguration.admissionregistration.k8s.io "{api.name("bad")}" is '
        "invalid: webhooks[0].matchConditions[0].expression: Invalid value: "
        f'"{expression}": {why}'
    )
