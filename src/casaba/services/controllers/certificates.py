"""Keeps the webhook's certificates: reads what there is, does the next step, looks again."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509

from casaba.kube import About, Conflict, EventRecorder, KubeClient
from casaba.policy.certificates import (
    CertificateState,
    CertificateTimes,
    ExtendBundle,
    Fault,
    Held,
    IssueServing,
    MakeAuthority,
    Step,
    TrimBundle,
    Wait,
    next_step,
)
from casaba.services.controllers.certificate_making import (
    VALID_FROM,
    Pair,
    as_pem,
    authority_fault,
    extended_bundle,
    fingerprint,
    new_authority,
    new_serving,
    read_bundle,
    read_pair,
    serving_fault,
    signer_of,
)
from casaba.services.controllers.certificate_steps import Unchanged, chosen, keep
from casaba.services.controllers.certificate_store import (
    AUTHORITY_CERTIFICATE,
    CertificateStore,
    StoredSecret,
    WebhookEntry,
)
from casaba.settings.controllers import CertificateSettings

log = logging.getLogger(__name__)

AUTHORITY_KEY = "ca.key"
SERVING_CERTIFICATE = "tls.crt"
SERVING_KEY = "tls.key"

Now = Callable[[], datetime]


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """Everything that was read for one step."""

    authority_secret: StoredSecret
    authority: Pair | Fault
    serving_secret: StoredSecret
    serving: Pair | Fault
    signer: x509.Certificate | None
    """The authority that signed what is served, if it is known."""
    entries: list[WebhookEntry]


class CertificateKeeper:
    """Of one webhook. Only one may run at a time, but nothing breaks if two do."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        settings: CertificateSettings,
        *,
        events: EventRecorder | None = None,
        utc_now: Now = lambda: datetime.now(UTC),
        monotonic_s: Callable[[], float] | None = None,
    ) -> None:
        self._settings = settings
        self._times = CertificateTimes(
            authority_lifetime_s=settings.authority_lifetime_s,
            serving_lifetime_s=settings.serving_lifetime_s,
            renew_at=settings.renew_at,
            bundle_settle_s=settings.bundle_settle_s,
            propagation_s=settings.propagation_s,
        )
        self._store = CertificateStore(
            client, namespace, mutating=settings.mutating, validating=settings.validating
        )
        self._names = _dns_names(settings.service, namespace, settings.cluster_domain)
        self._events = events
        self._utc_now = utc_now
        self._unchanged = Unchanged(monotonic_s)
        self.expiries: dict[str, float] = {}
        """When `authority` and `serving` end, seconds since 1970, as last seen."""

    async def run(self) -> None:
        """Never returns."""
        self._unchanged.forget()  # others may have been at it since we last led
        await keep(self.step, self._settings.check_s)

    async def run_once(self) -> None:
        """Return when a certificate can be served that every webhook that there is trusts.

        What only is due is left to who keeps them. Raises KubeError.
        """
        while not self._can_be_served(await self._look()):
            with contextlib.suppress(Conflict):
                step = await self.step()
                if isinstance(step, Wait):
                    await asyncio.sleep(min(step.seconds, self._settings.check_s))

    def _can_be_served(self, seen: _Seen) -> bool:
        if isinstance(seen.serving, Fault) or seen.signer is None:
            return False
        signer = fingerprint(seen.signer)
        return (
            serving_fault(seen.serving, seen.signer, self._names) is None
            and seen.serving.held.expires_at > self._utc_now()
            and all(signer in read_bundle(entry.bundle) for entry in seen.entries)
        )

    async def step(self) -> Step:
        """Read, decide and do one step; raises KubeError."""
        seen = await self._look()
        now = self._utc_now()
        if now <= VALID_FROM:
            log.error("certificates.clock_wrong", extra={"now": now.isoformat()})
            return Wait(seconds=self._settings.check_s, is_done=False)
        step = next_step(self._state(seen), now, self._times)
        match step:
            case MakeAuthority(why=why):
                await self._make_authority(seen, now, why)
            case ExtendBundle(webhooks=keys):
                await self._store.trust(chosen(seen.entries, keys), _extended(seen))
            case IssueServing(why=why):
                await self._issue(seen, now, why)
            case TrimBundle(webhooks=keys):
                await self._store.trust(
                    chosen(seen.entries, keys), lambda _: _authority(seen).certificate_pem
                )
            case Wait():
                pass
        return step

    async def _look(self) -> _Seen:
        authority_secret = await self._store.secret(self._settings.authority_secret)
        serving_secret = await self._store.secret(self._settings.serving_secret)
        authority = _read_authority(authority_secret)
        serving = read_pair(
            serving_secret.data.get(SERVING_CERTIFICATE, b""),
            serving_secret.data.get(SERVING_KEY, b""),
        )
        return _Seen(
            authority_secret=authority_secret,
            authority=authority,
            serving_secret=serving_secret,
            serving=serving,
            signer=signer_of(serving, serving_secret.data.get(AUTHORITY_CERTIFICATE, b"")),
            entries=await self._store.webhooks(),
        )

    def _state(self, seen: _Seen) -> CertificateState:
        authority = seen.authority
        known = None if isinstance(authority, Fault) else authority.held.fingerprint
        bundles = {entry.key: frozenset(read_bundle(entry.bundle)) for entry in seen.entries}
        everywhere = known is not None and all(known in bundle for bundle in bundles.values())
        bundled = (known, frozenset(bundles)) if everywhere else None
        serving = self._serving(seen)
        state = CertificateState(
            authority=authority if isinstance(authority, Fault) else authority.held,
            serving=serving,
            serving_signer=fingerprint(seen.signer) if seen.signer else None,
            bundles=bundles,
            bundled_for_s=self._unchanged.for_s("bundled", bundled) if bundled else 0.0,
            serving_for_s=self._unchanged.for_s("serving", seen.serving_secret.data.get("tls.crt")),
        )
        self._note_expiries(state)
        return state

    def _serving(self, seen: _Seen) -> Held | Fault:
        if isinstance(seen.serving, Fault):
            return seen.serving
        if isinstance(seen.authority, Fault):
            return Fault.OTHER_SIGNER
        authority = seen.authority.certificate
        return serving_fault(seen.serving, authority, self._names) or seen.serving.held

    def _note_expiries(self, state: CertificateState) -> None:
        held = {"authority": state.authority, "serving": state.serving}
        self.expiries = {
            name: one.expires_at.timestamp() for name, one in held.items() if isinstance(one, Held)
        }

    async def _make_authority(self, seen: _Seen, now: datetime, why: str) -> None:
        made = new_authority(now, self._settings.authority_lifetime_s)
        data = {AUTHORITY_CERTIFICATE: made.certificate_pem, AUTHORITY_KEY: made.key_pem}
        await self._store.write(seen.authority_secret, data)
        self._tell(seen.authority_secret, "AuthorityMade", "made an authority", why)

    async def _issue(self, seen: _Seen, now: datetime, why: str) -> None:
        authority = _authority(seen)
        made = new_serving(authority, self._names, now, self._settings.serving_lifetime_s)
        data = {
            SERVING_CERTIFICATE: made.certificate_pem,
            SERVING_KEY: made.key_pem,
            AUTHORITY_CERTIFICATE: authority.certificate_pem,
        }
        await self._store.write(seen.serving_secret, data)
        self._tell(seen.serving_secret, "CertificateIssued", "issued a serving certificate", why)

    def _tell(self, secret: StoredSecret, reason: str, done: str, why: str) -> None:
        log.info(
            "certificates.written",
            extra={"secret": f"{self._store.namespace}/{secret.name}", "done": done, "why": why},
        )
        if self._events is not None and secret.exists:
            about = About(
                api_version="v1",
                kind="Secret",
                namespace=self._store.namespace,
                name=secret.name,
                uid=secret.uid,
            )
            self._events.record(about, reason=reason, message=f"{done}: {why}")


def _dns_names(service: str, namespace: str, cluster_domain: str) -> tuple[str, ...]:
    """The API server calls a Service's webhook by the second."""
    inside = f"{service}.{namespace}"
    return (inside, f"{inside}.svc", f"{inside}.svc.{cluster_domain}")


def _read_authority(secret: StoredSecret) -> Pair | Fault:
    pair = read_pair(
        secret.data.get(AUTHORITY_CERTIFICATE, b""), secret.data.get(AUTHORITY_KEY, b"")
    )
    return pair if isinstance(pair, Fault) else authority_fault(pair) or pair


def _authority(seen: _Seen) -> Pair:
    assert isinstance(seen.authority, Pair)
    return seen.authority


def _extended(seen: _Seen) -> Callable[[WebhookEntry], bytes]:
    """What an entry trusts now, and what it must trust."""
    signers = (_authority(seen).certificate, seen.signer)
    wanted = {fingerprint(one): as_pem(one) for one in signers if one is not None}
    return lambda entry: extended_bundle(entry.bundle, wanted)
