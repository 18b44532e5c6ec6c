"""Admission webhooks that fail: bad answers, none in time, and those that nobody may trust."""

import asyncio
import base64
import socket

import pytest
from aiohttp import web

from casaba.simulation.authority import ClusterAuthority
from tests.conformance.api_server.door import ApiDoor, Object
from tests.conformance.api_server.webhook_server import (
    ADDRESS,
    MUTATING,
    VALIDATING,
    Webhook,
    create,
    patching,
    registered,
)


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
