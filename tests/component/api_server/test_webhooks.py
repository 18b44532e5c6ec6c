"""Calls to webhooks that have no counterpart in the conformance suite."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from casaba.simulation.api_server.admission import Admission
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.statuses import ApiError
from casaba.simulation.api_server.webhook_calls import ANSWER_BYTES
from tests.conformance.api_server.webhook_server import (
    ADDRESS,
    MUTATING,
    VALIDATING,
    Webhook,
    listener_in,
    patching,
    webhook_at,
)
from tests.unit.simulation.small_cluster import ADMIN, SmallCluster, asked

SERVICE = ("hooks", "gpu-webhook")
HOST = "gpu-webhook.hooks.svc"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
FAILED = 'Internal error occurred: failed calling webhook "x.webhooks.example": '


@pytest.fixture
async def webhook() -> AsyncIterator[Webhook]:
    async with webhook_at(listener_in(None), names=[ADDRESS, HOST]) as webhook:
        yield webhook


async def created(
    webhook: Webhook, *entries: Object, plural: str = VALIDATING, **query: str
) -> Any:
    """A ConfigMap after admission with these webhooks, and the warnings."""
    cluster = SmallCluster()
    cluster.add(plural, {"metadata": {"name": "hooks"}, "webhooks": list(entries)})
    admission = Admission(cluster, service_addresses={SERVICE: (ADDRESS, webhook.port)})
    request = asked(ADMIN, "create", "configmaps", "one", query=query)
    return await admission.admitted(request, CONFIG_MAP, None)


async def refused(webhook: Webhook, *entries: Object, **fields: Any) -> str:
    with pytest.raises(ApiError) as refusal:
        await created(webhook, *entries, **fields)
    return str(refusal.value)


async def test_a_service_is_found_by_its_address_and_trusted_by_its_name(webhook: Webhook) -> None:
    bundle = webhook.client_config("/x")["caBundle"]
    service = {"namespace": SERVICE[0], "name": SERVICE[1], "path": "/x", "port": 8443}
    config = {"service": service, "caBundle": bundle}
    await created(webhook, webhook.entry("/x", clientConfig=config))
    assert len(webhook.seen("/x")) == 1


async def test_an_answer_without_end_is_cut(webhook: Webhook) -> None:
    webhook.raw["/x"] = web.Response(body=b" " * (ANSWER_BYTES + 1))
    told = await refused(webhook, webhook.entry("/x"))
    assert told == f"{FAILED}failed to call webhook: the answer is over {ANSWER_BYTES} bytes"


async def test_side_effects_forbid_a_dry_run(webhook: Webhook) -> None:
    entry = webhook.entry("/x", sideEffects="Some")
    await created(webhook, entry)
    told = await refused(webhook, entry, dryRun="All")
    assert told == 'admission webhook "x.webhooks.example" does not support dry run'
    assert len(webhook.seen("/x")) == 1


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"url": "http://127.0.0.1/x"}, "webhook URL 'http://127.0.0.1/x' is not https"),
        ({"url": "https://[/x"}, "parse 'https://[/x': "),
        ({"url": "https://127.0.0.1/x", "caBundle": "!"}, "unable to load root certificates: "),
        ({"url": "https://127.0.0.1/x", "caBundle": "eA=="}, "unable to load root certificates: "),
    ],
)
async def test_a_configuration_that_can_not_be_used_is_a_failure(
    webhook: Webhook, config: Object, why: str
) -> None:
    told = await refused(webhook, webhook.entry("/x", clientConfig=config))
    assert told.startswith(f"{FAILED}could not get REST client: {why}")


async def test_validating_webhooks_are_called_side_by_side(webhook: Webhook) -> None:
    webhook.held["/a"] = asyncio.Event()

    def releasing(request: Object) -> Object:
        webhook.held["/a"].set()
        return {"allowed": True}

    async with asyncio.timeout(10):
        await created(webhook, webhook.entry("/a"), webhook.entry("/b", releasing))


async def test_warnings_of_all_webhooks_come_in_their_order(webhook: Webhook) -> None:
    def warning(text: str) -> Any:
        return lambda request: {"allowed": True, "warnings": [text]}

    entries = [webhook.entry(f"/{name}", warning(name)) for name in ("b", "a", "c")]
    for plural in (MUTATING, VALIDATING):
        assert await created(webhook, *entries, plural=plural) == (CONFIG_MAP, ("b", "a", "c"))


async def test_a_webhook_that_hangs_up_is_a_failure(webhook: Webhook) -> None:
    async with asyncio.TaskGroup() as group:
        listener = await asyncio.start_server(_hang_up, ADDRESS, 0)
        port = listener.sockets[0].getsockname()[1]
        config = webhook.client_config("/x") | {"url": f"https://{ADDRESS}:{port}/x"}
        task = group.create_task(refused(webhook, webhook.entry("/x", clientConfig=config)))
    listener.close()
    await listener.wait_closed()
    assert task.result().startswith(f'{FAILED}failed to call webhook: Post "{config["url"]}?')


async def _hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.close()


async def test_a_patch_fills_in_what_its_fields_default_to(webhook: Webhook) -> None:
    volume = [{"name": "v", "configMap": {"name": "one"}}]
    add = {"op": "add", "path": "/spec/volumes", "value": volume}
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}]
    cluster = SmallCluster()
    entry = webhook.entry("/x", patching(add), rules=rules)
    cluster.add(MUTATING, {"metadata": {"name": "hooks"}, "webhooks": [entry]})
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    request = asked(ADMIN, "create", "pods", "p")
    changed, _ = await Admission(cluster).admitted(request, pod, None)
    assert changed is not None
    assert changed["spec"]["volumes"][0]["configMap"]["defaultMode"] == 0o644
    assert pod["spec"] == {"containers": [{"name": "c", "image": "i"}]}
