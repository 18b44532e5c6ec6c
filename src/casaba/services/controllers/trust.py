"""Lets webhooks trust who signed a certificate that somebody gives, and follows its changes."""

from collections.abc import Callable

from casaba.errors import InvalidInput
from casaba.kube import KubeClient
from casaba.policy.certificates import (
    ExtendBundle,
    Fingerprint,
    TrimBundle,
    Wait,
    next_trust,
)
from casaba.services.controllers.certificate_making import (
    UNREADABLE,
    extended_bundle,
    read_bundle,
)
from casaba.services.controllers.certificate_steps import Unchanged, chosen, keep
from casaba.services.controllers.certificate_store import AUTHORITY_CERTIFICATE, CertificateStore
from casaba.settings.controllers import TrustSettings

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
        self._unchanged = Unchanged(monotonic_s)

    async def run(self) -> None:
        """Never returns."""
        self._unchanged.forget()  # others may have been at it since we last led
        await keep(self.step, self._settings.check_s)

    async def step(self) -> ExtendBundle | TrimBundle | Wait:
        """Read, decide and do one step; raises KubeError, InvalidInput for a Secret without use."""
        wanted = await self._authorities()
        entries = await self._store.webhooks()
        step = next_trust(
            frozenset(wanted),
            {entry.key: frozenset(read_bundle(entry.bundle)) for entry in entries},
            wanted_for_s=self._unchanged.for_s("wanted", frozenset(wanted)),
            propagation_s=self._settings.propagation_s,
        )
        match step:
            case ExtendBundle(webhooks=keys):
                await self._store.trust(
                    chosen(entries, keys), lambda one: extended_bundle(one.bundle, wanted)
                )
            case TrimBundle(webhooks=keys):
                await self._store.trust(chosen(entries, keys), lambda _: b"".join(wanted.values()))
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
