"""A simulated API server that asks a running webhook, as the chart's configuration lets it."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from prometheus_client.parser import text_string_to_metric_families

from casaba.kube import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    MUTATING_WEBHOOKS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    VALIDATING_WEBHOOKS,
    KubeClient,
)
from casaba.model.gpu import Gpu
from casaba.model.ids import NodeName
from casaba.policy.slices import slice_spec
from casaba.services.webhook.main import RunningWebhook, serving_webhook
from casaba.settings.host_paths import DRIVER_NAME
from casaba.settings.webhook import WebhookSettings
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.component.webhook.certificates import LOOPBACK, Authority, SecretVolume
from tests.unit.values import A10

Object = dict[str, Any]

NAMESPACE = "default"
USER = "system:serviceaccount:casaba-system:casaba-webhook"
WITHIN_S = 30.0

RULES: list[Object] = [
    {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceslices", "deviceclasses"],
        "verbs": ["list", "watch"],
    },
    {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceclaimtemplates"],
        "verbs": ["get", "list", "watch", "create", "patch"],
    },
    {"apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["list", "watch"]},
]
"""All that the webhook may do."""


@dataclass
class Site:
    """One API server and what replicas need to run beside it."""

    server: SimulatedApiServer
    client: KubeClient
    """The administrator's."""
    authority: Authority
    volume: SecretVolume
    settings: WebhookSettings

    @asynccontextmanager
    async def replica(self, *, wait: bool = True, **changes: Any) -> AsyncIterator[Replica]:
        """Another webhook, ready if we `wait`; nobody is told of it."""

        async def is_ready() -> bool:
            return running.readiness.reason() is None

        settings = replace(self.settings, **changes)
        async with (
            serving_webhook(settings) as running,
            Replica.of(running, self.authority) as replica,
        ):
            if wait:
                await until(is_ready)
            yield replica

    async def ask_webhook(self, replica: Replica, **fields: Any) -> None:
        """Let the API server ask a replica about pods, claims and templates."""
        for resource, entries in (
            (MUTATING_WEBHOOKS, [self._entry(replica, "/mutate", "", ["pods"], **fields)]),
            (
                VALIDATING_WEBHOOKS,
                [
                    self._entry(
                        replica,
                        "/validate",
                        "resource.k8s.io",
                        ["resourceclaims", "resourceclaimtemplates"],
                    )
                ],
            ),
        ):
            body = {"metadata": {"name": "casaba"}, "webhooks": entries}
            await self.client.apply(resource, "casaba", body)

    def _entry(
        self, replica: Replica, path: str, group: str, resources: list[str], **fields: Any
    ) -> Object:
        return {
            "name": f"{path.strip('/')}.casaba.dev",
            "clientConfig": {
                "url": f"{replica.url}{path}",
                "caBundle": base64.b64encode(self.authority.pem).decode(),
            },
            "rules": [
                {
                    "apiGroups": [group],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": resources,
                }
            ],
            "sideEffects": "NoneOnDryRun",
            "admissionReviewVersions": ["v1"],
            **fields,
        }

    async def create_pod(self, pod: Object, **options: Any) -> Object:
        """A pod as it is stored."""
        return await self.client.create(PODS.decoded_as(dict), pod, namespace=NAMESPACE, **options)

    def templates(self) -> list[Object]:
        """All that are stored."""
        return list(self.server.objects("resourceclaimtemplates"))

    async def forget_templates(self) -> None:
        """Delete them as somebody else."""
        await self.client.delete_collection(RESOURCE_CLAIM_TEMPLATES, namespace=NAMESPACE)


@dataclass
class Replica:
    """A running webhook, and a client that trusts it."""

    running: RunningWebhook
    session: aiohttp.ClientSession
    context: ssl.SSLContext

    @classmethod
    @asynccontextmanager
    async def of(cls, running: RunningWebhook, authority: Authority) -> AsyncIterator[Replica]:
        context = authority.client_context()
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            yield cls(running, session, context)

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self.running.port}"

    async def post(self, content: bytes, path: str = "/mutate", query: str = "") -> Object:
        """The response of the review that comes back, whatever was sent."""
        async with self.session.post(
            f"{self.url}{path}{query}", data=io.BytesIO(content)
        ) as answer:
            assert answer.status == 200
            assert answer.content_type == "application/json"
            review = await answer.json()
        assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response: Object = review["response"]
        assert response["allowed"] is True or response["status"]["message"]
        return response

    async def probe(self, path: str) -> tuple[int, str]:
        """Of the other listener."""
        url = f"http://{LOOPBACK}:{self.running.metrics_port}{path}"
        async with self.session.get(url) as answer:
            return answer.status, await answer.text()

    async def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples with these labels."""
        _, text = await self.probe("/metrics")
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


@asynccontextmanager
async def site(folder: Path, *, cards: tuple[Gpu, ...] = (A10,)) -> AsyncIterator[Site]:
    """An API server with cards and a class, and a user for the webhook with just its rights."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(SimulatedApiServer())
        client = await stack.enter_async_context(KubeClient(server.admin_config()))
        server.seed([_slice(cards), _device_class()])
        await _grant(client)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(server.kubeconfig(USER, ())))
        authority, volume = Authority(), SecretVolume(folder / "tls")
        volume.put(authority.pair(), authority.pem)
        settings = WebhookSettings(
            kubeconfig=kubeconfig,
            address=f"{LOOPBACK}:0",
            metrics_address=f"{LOOPBACK}:0",
            certificate_dir=volume.folder,
            certificate_check_s=0.02,
            drain_s=0.0,
        )
        yield Site(server, client, authority, volume, settings)


async def _grant(client: KubeClient) -> None:
    name = "casaba-webhook"
    await client.create(CLUSTER_ROLES, {"metadata": {"name": name}, "rules": RULES})
    binding = {
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": name,
        },
        "subjects": [
            {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": USER},
        ],
    }
    await client.create(CLUSTER_ROLE_BINDINGS, binding)


def _slice(cards: tuple[Gpu, ...]) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "edge-1-cards"},
        "spec": slice_spec(NodeName("edge-1"), cards, 1),
    }


def _device_class() -> Object:
    expression = f'device.driver == "{DRIVER_NAME}"'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER_NAME},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def classic_pod(name: str = "one", *, memory_mib: int = 10240, **metadata: Any) -> Object:
    """A pod that asks for a part of a card in the classic way."""
    limits = {
        "nvidia.com/gpu": "1",
        "nvidia.com/gpumem": str(memory_mib),
        "nvidia.com/gpucores": "50",
    }
    container = {"name": "main", "image": "registry.example/i:1", "resources": {"limits": limits}}
    return {
        "metadata": {"name": name, **metadata} if name else metadata,
        "spec": {"containers": [container]},
    }


def review_of(pod: Any, uid: str = "u-1", operation: str = "CREATE", **fields: Any) -> bytes:
    """A review of a pod as the API server writes it."""
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": NAMESPACE,
        "operation": operation,
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        **fields,
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(review).encode()


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    """Look again until it is true."""
    async with asyncio.timeout(WITHIN_S):
        while not await look():  # noqa: ASYNC110 - any condition, not only events
            await asyncio.sleep(0.005)
