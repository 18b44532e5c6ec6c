"""An admission webhook over HTTPS whose answers the test chooses, and how to register it."""

from __future__ import annotations

import asyncio
import base64
import ctypes
import json
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from casaba.simulation.authority import ClusterAuthority
from tests.conformance.api_server.door import Answer, ApiDoor, Object
from tests.conformance.api_server.objects import config_map

ADDRESS = "127.0.0.1"
MUTATING = "mutatingwebhookconfigurations"
VALIDATING = "validatingwebhookconfigurations"
_KINDS = {MUTATING: "MutatingWebhookConfiguration", VALIDATING: "ValidatingWebhookConfiguration"}
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
_PROBE_LABEL = "webhook-probe"
_ACTIVE_WITHIN_S = 20.0
_CLONE_NEWNET = 0x40000000

Respond = Callable[[Object], Object]
"""The `response` of an AdmissionReview for its `request`; the uid is added."""


def allow(request: Object) -> Object:
    """Lets everything pass."""
    return {"allowed": True}


def denying(**status: Any) -> Respond:
    """Says no."""
    return lambda request: {"allowed": False, **({"status": status} if status else {})}


def patching(*operations: Object) -> Respond:
    """Lets everything pass with a JSON patch."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


@dataclass(kw_only=True)
class Webhook:
    """A webhook that listens; each path has its own answer."""

    url: str
    authority: ClusterAuthority
    requests: list[tuple[str, Object]] = field(default_factory=list)
    """Path and `request` of each review, as they came."""
    raw: dict[str, web.Response] = field(default_factory=dict)
    """Whole HTTP answers, for paths that do not answer with a review."""
    responses: dict[str, Respond] = field(default_factory=dict)
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    """Paths that answer when their event is set."""

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def seen(self, path: str) -> list[Object]:
        """The requests that came to a path."""
        return [request for called, request in self.requests if called == path]

    @property
    def called(self) -> list[str]:
        """The paths that were called, but for probes, in order."""
        return [path for path, _ in self.requests if not path.startswith("/probe")]

    def client_config(self, path: str) -> Object:
        """How the API server reaches a path of it."""
        return {
            "url": f"{self.url}{path}",
            "caBundle": base64.b64encode(self.authority.authority_pem.encode()).decode(),
        }

    def entry(self, path: str, respond: Respond = allow, **fields: Any) -> Object:
        """One webhook of a configuration, for ConfigMaps unless `fields` say something else."""
        self.responses[path] = respond
        return {
            "name": f"{path.strip('/')}.webhooks.example",
            "clientConfig": self.client_config(path),
            "rules": [rule("configmaps")],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **fields,
        }

    async def _answer(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.requests.append((request.path, review["request"]))
        if (event := self.held.get(request.path)) is not None:
            await event.wait()
        if (raw := self.raw.get(request.path)) is not None:
            return web.Response(status=raw.status, body=raw.body, content_type=raw.content_type)
        response = self.responses[request.path](review["request"])
        answer = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
        uid = review["request"]["uid"]
        return web.json_response({**answer, "response": {"uid": uid, **response}})


def rule(*resources: str, group: str = "", operations: str = "*", **fields: Any) -> Object:
    """One rule of a webhook."""
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": [operations],
        "resources": list(resources),
        **fields,
    }


@asynccontextmanager
async def webhook_at(
    listener: socket.socket, names: Sequence[str] = (ADDRESS,)
) -> AsyncIterator[Webhook]:
    """A webhook that listens on this socket, with a certificate for these names."""
    authority = ClusterAuthority.create()
    webhook = Webhook(url=f"https://{ADDRESS}:{listener.getsockname()[1]}", authority=authority)
    app = web.Application()
    app.router.add_post("/{path:.*}", webhook._answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    context = authority.server_context(names)
    await web.SockSite(runner, listener, ssl_context=context).start()
    try:
        yield webhook
    finally:
        for event in webhook.held.values():
            event.set()
        _break_connections(runner)
        await runner.cleanup()


def _break_connections(runner: web.AppRunner) -> None:
    """Without a farewell, which a client might not answer before the test's loop has ended."""
    assert runner.server
    for connection in runner.server.connections:
        if connection.transport:
            connection.transport.abort()


def listener_in(network_namespace: Path | None) -> socket.socket:
    """A listening loopback socket, here or in another network namespace (root)."""
    if network_namespace is None:
        return socket.create_server((ADDRESS, 0))
    made: list[socket.socket] = []
    # A socket stays in the namespace of the thread that made it; the thread ends with its own.
    thread = threading.Thread(target=lambda: made.append(_listener_inside(network_namespace)))
    thread.start()
    thread.join()
    return made[0]


def _listener_inside(network_namespace: Path) -> socket.socket:
    with network_namespace.open() as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return socket.create_server((ADDRESS, 0))


@asynccontextmanager
async def registered(
    api: ApiDoor, webhook: Webhook, plural: str, *entries: Object, name: str = "hooks"
) -> AsyncIterator[None]:
    """Webhooks that the API server calls for the test's namespace, from now until the end."""
    own = {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": _KINDS[plural],
        "metadata": {"name": api.name(name)},
        "webhooks": [
            _probe(webhook, name, own),
            *({"namespaceSelector": own, **entry} for entry in entries),
        ],
    }
    path = f"{_CONFIGURATIONS}/{plural}"
    (await api.post(path, configuration)).object(201)
    try:
        await _wait_until_active(api, webhook, name)
        yield
    finally:
        await api.delete(f"{path}/{api.name(name)}")


async def create(api: ApiDoor, name: str = "one", **metadata: Any) -> Answer:
    """Try to create a ConfigMap, without storing it."""
    return await api.post(f"{api.core('configmaps')}?dryRun=All", config_map(name, **metadata))


def _probe(webhook: Webhook, name: str, own: Object) -> Object:
    """A webhook that only tells when the server has read the configuration."""
    selector = {"matchLabels": {_PROBE_LABEL: name}}
    entry = webhook.entry(f"/probe-{name}", objectSelector=selector, namespaceSelector=own)
    return {**entry, "rules": [rule("secrets", operations="CREATE")]}


async def _wait_until_active(api: ApiDoor, webhook: Webhook, name: str) -> None:
    probe = {"metadata": {"generateName": "probe-", "labels": {_PROBE_LABEL: name}}}
    async with asyncio.timeout(_ACTIVE_WITHIN_S):
        while not webhook.seen(f"/probe-{name}"):
            answer = await api.post(f"{api.core('secrets')}?dryRun=All", probe)
            assert answer.status == 201, answer.text
