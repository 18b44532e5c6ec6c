"""Lets webhooks trust who signed a certificate that somebody gives, and follows its changes."""

import asyncio
import logging
from collections.abc import Callable

from casaba.aiokit import Backoff
from casaba.errors import InvalidInput
from casaba.kube import KubeClient, KubeError
from casaba.policy.certificates import (
    ExtendBundle,
    Fingerprint,
    TrimBundle,
    Wait,
    next_trust,
)
from casaba.services.controllers.certificate_making import UNREADABLE, read_bundle
from casaba.services.controllers.certificate_store import CertificateStore, WebhookEntry
from casaba.settings.controllers import TrustSettings

log = logging.getLogger(__name__)

AUTHORITY_CERTIFICATE = "ca.crt"

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 30.0

Authorities = dict[Fingerprint, bytes]
"""Certificates by their fingerprints, as PEM."""


class TrustKeeper:
    """Of one webhook. Only one may run at a time, but nothing breaks if two do."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        settings: TrustSettings,
        *,
        monotonic_s: Callable[[], float] | None = None,
    ) -> None:
        self._settings = settings
        self._store = CertificateStore(
            client, namespace, mutating=settings.mutating, validating=settings.validating
        )
        self._monotonic_s = monotonic_s or asyncio.get_running_loop().time
        self._backoff = Backoff(first_s=FIRST_RETRY_S, limit_s=LAST_RETRY_S)
        self._known: tuple[frozenset[Fingerprint], float] = (frozenset(), 0.0)

    async def run(self) -> None:
        """Never returns."""
        self._known = (frozenset(), 0.0)  # others may have been at it since we last led
        while True:
            wait_s = await self._stepped()
            await asyncio.sleep(min(wait_s, self._settings.check_s))

    async def _stepped(self) -> float:
        """Do a step; in how many seconds to look again."""
        try:
            step = await self.step()
        except (KubeError, InvalidInput) as error:
            delay_s = self._backoff.next_delay_s()
            told = {"reason": str(error), "retry_in_s": round(delay_s, 2)}
            log.warning("certificates.not_kept", extra=told)
            return delay_s
        if not isinstance(step, Wait):
            return self._backoff.next_delay_s()
        self._backoff.reset()
        return step.seconds

    async def step(self) -> ExtendBundle | TrimBundle | Wait:
        """Read, decide and do one step; raises KubeError, InvalidInput for a Secret without use."""
        wanted = await self._authorities()
        entries = await self._store.webhooks()
        step = next_trust(
            frozenset(wanted),
            {entry.key: frozenset(read_bundle(entry.bundle)) for entry in entries},
            wanted_for_s=self._seen_for_s(frozenset(wanted)),
            propagation_s=self._settings.propagation_s,
        )
        match step:
            case ExtendBundle(webhooks=keys):
                await self._store.trust(_chosen(entries, keys), lambda one: _extended(one, wanted))
            case TrimBundle(webhooks=keys):
                await self._store.trust(_chosen(entries, keys), lambda _: b"".join(wanted.values()))
            case Wait():
                pass
        return step

    async def _authorities(self) -> Authorities:
        name = self._settings.secret
        secret = await self._store.secret(name)
        found = read_bundle(secret.data.get(AUTHORITY_CERTIFICATE, b""))
        if not found or UNREADABLE in found:
            raise InvalidInput(
                f"Secret {self._store.namespace}/{name} has no certificates in PEM as "
                f"{AUTHORITY_CERTIFICATE}, for the API server to trust; give the chart who signed "
                "your certificate, as certs.custom.ca"
            )
        return found

    def _seen_for_s(self, wanted: frozenset[Fingerprint]) -> float:
        now_s = self._monotonic_s()
        known, since_s = self._known
        if known != wanted:
            since_s = now_s
        self._known = (wanted, since_s)
        return now_s - since_s


def _chosen(entries: list[WebhookEntry], keys: tuple[str, ...]) -> list[WebhookEntry]:
    return [entry for entry in entries if entry.key in keys]


def _extended(entry: WebhookEntry, wanted: Authorities) -> bytes:
    together = read_bundle(entry.bundle) | wanted
    return b"".join(pem for name, pem in together.items() if name != UNREADABLE)
