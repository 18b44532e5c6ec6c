"""Secrets and webhook configurations: what they hold of certificates, and writing it.

Every write names the version that was read: whoever was overtaken changes nothing.
"""

import base64
import binascii
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from casaba.kube import (
    MUTATING_WEBHOOKS,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Invalid,
    KubeClient,
    NotFound,
    Resource,
)
from casaba.services.controllers.certificate_making import read_bundle

log = logging.getLogger(__name__)

AUTHORITY_CERTIFICATE = "ca.crt"
"""Key of a Secret: who signed the certificate in it, PEM."""

_OWNER = {"app.kubernetes.io/managed-by": "casaba-controller"}
_TLS = "kubernetes.io/tls"
_OPAQUE = "Opaque"


@dataclass(frozen=True, kw_only=True)
class StoredSecret:
    """A Secret; without UID it is not there (yet)."""

    name: str
    uid: str = ""
    resource_version: str = ""
    data: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Decoded; what is no base64 is left out."""

    @property
    def exists(self) -> bool:
        """Whether the API server has it."""
        return bool(self.uid)


@dataclass(frozen=True, kw_only=True)
class WebhookEntry:
    """One webhook of a configuration, and what it trusts."""

    resource: Resource[Any]
    configuration: str
    resource_version: str
    index: int
    name: str
    bundle: bytes

    @property
    def key(self) -> str:
        """Names it among all."""
        return f"{self.resource.plural}/{self.configuration}/{self.index}/{self.name}"


class CertificateStore:
    """The objects of one namespace, and the configurations of some names."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        *,
        mutating: tuple[str, ...],
        validating: tuple[str, ...],
    ) -> None:
        self._client = client
        self.namespace = namespace
        self._configurations: tuple[tuple[Resource[Any], str], ...] = (
            *((MUTATING_WEBHOOKS, name) for name in mutating),
            *((VALIDATING_WEBHOOKS, name) for name in validating),
        )

    async def secret(self, name: str) -> StoredSecret:
        """Read a Secret."""
        try:
            found = await self._client.get(SECRETS, name, namespace=self.namespace)
        except NotFound:
            return StoredSecret(name=name)
        metadata = found["metadata"]
        return StoredSecret(
            name=name,
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
            data=dict(_decoded(found.get("data") or {})),
        )

    async def write(self, secret: StoredSecret, data: Mapping[str, bytes]) -> None:
        """Let a Secret hold exactly this; raises Conflict if it is not as it was read.

        One that can't be changed (`immutable: true`) is deleted, and has to be written again.
        """
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        if not secret.exists:
            body = {
                "metadata": {"name": secret.name, "labels": _OWNER},
                "type": _TLS if "tls.crt" in data else _OPAQUE,
                "data": encoded,
            }
            await self._client.create(SECRETS, body, namespace=self.namespace)
            return
        try:
            await self._client.patch(
                SECRETS,
                secret.name,
                [{"op": "add", "path": "/data", "value": encoded}],
                namespace=self.namespace,
                uid=secret.uid,
                resource_version=secret.resource_version,
            )
        except Invalid:
            await self._client.delete(
                SECRETS, secret.name, namespace=self.namespace, uid=secret.uid
            )

    async def webhooks(self) -> list[WebhookEntry]:
        """Read every webhook of the configurations that there are."""
        entries: list[WebhookEntry] = []
        for resource, name in self._configurations:
            try:
                found = await self._client.get(resource, name)
            except NotFound:
                continue
            entries += _entries(resource, found)
        return entries

    async def trust(
        self, entries: Iterable[WebhookEntry], bundle: Callable[[WebhookEntry], bytes]
    ) -> None:
        """Give webhooks other bundles, those of one configuration at once; raises Conflict."""
        for _, group in groupby(entries, key=lambda entry: (entry.resource, entry.configuration)):
            several = list(group)
            bundles = {entry.key: bundle(entry) for entry in several}
            await self._trust(several, bundles)
            log.info(
                "certificates.bundle_patched",
                extra={
                    "configuration": several[0].configuration,
                    "kind": several[0].resource.kind,
                    "authorities": max(len(read_bundle(pem)) for pem in bundles.values()),
                },
            )

    async def _trust(self, entries: list[WebhookEntry], bundles: Mapping[str, bytes]) -> None:
        first = entries[0]
        patch = [
            {
                "op": "add",
                "path": f"/webhooks/{entry.index}/clientConfig/caBundle",
                "value": base64.b64encode(bundles[entry.key]).decode(),
            }
            for entry in entries
        ]
        await self._client.patch(
            first.resource,
            first.configuration,
            patch,
            resource_version=first.resource_version,
        )


def digest(secret: StoredSecret) -> str:
    """Differs when what it holds does."""
    parts = sorted((key, hashlib.sha256(value).digest()) for key, value in secret.data.items())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _entries(resource: Resource[Any], found: dict[str, Any]) -> Iterator[WebhookEntry]:
    metadata = found["metadata"]
    for index, webhook in enumerate(found.get("webhooks") or ()):
        yield WebhookEntry(
            resource=resource,
            configuration=metadata["name"],
            resource_version=metadata["resourceVersion"],
            index=index,
            name=webhook["name"],
            bundle=_bytes(webhook["clientConfig"].get("caBundle") or ""),
        )


def _decoded(data: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    for key, text in data.items():
        if value := _bytes(text):
            yield key, value


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
