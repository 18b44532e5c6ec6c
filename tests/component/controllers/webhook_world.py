"""A webhook's Secrets and configurations, who serves and who calls, on clocks of the test.

Replicas serve what the Secret held at some moment of the last `propagation_s`; API servers use a
bundle that the configuration held at some moment of the last `bundle_settle_s`. Each of the one
must be able to talk to each of the other.
"""

import base64
import os
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509

from casaba.kube import (
    MUTATING_WEBHOOKS,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Conflict,
    KubeClient,
    NotFound,
)
from casaba.policy.certificates import Wait
from casaba.services.controllers.certificates import CertificateKeeper
from casaba.settings.controllers import DAY_S, CertificateSettings
from tests.component.controllers.clocks import Clocks

NAMESPACE = "hami-system"
HOST = f"hami-dra-webhook.{NAMESPACE}.svc"
SETTINGS = CertificateSettings(authority_lifetime_s=300 * DAY_S, serving_lifetime_s=90 * DAY_S)
CONFIGURATIONS = (
    (MUTATING_WEBHOOKS, "hami-dra-webhook"),
    (VALIDATING_WEBHOOKS, "hami-dra-webhook"),
)


LONGEST_WAIT_S = 70 * DAY_S


class Killed(BaseException):
    """The process is gone; nothing in it hears of that."""


class DoomedClient(KubeClient):
    """Lets something happen before and after each write, by its number."""

    writes = 0
    before_write: Callable[[int], Awaitable[None]] | None = None
    after_write: Callable[[int], Awaitable[None]] | None = None

    async def _around(self, write: Awaitable[Any]) -> Any:
        self.writes += 1
        number = self.writes
        try:
            if self.before_write:
                await self.before_write(number)
        except BaseException:
            write.close()  # type: ignore[attr-defined]
            raise
        answer = await write
        if self.after_write:
            await self.after_write(number)
        return answer

    async def create(self, *args: Any, **options: Any) -> Any:
        return await self._around(super().create(*args, **options))

    async def patch(self, *args: Any, **options: Any) -> Any:
        return await self._around(super().patch(*args, **options))

    async def delete(self, *args: Any, **options: Any) -> None:
        await self._around(super().delete(*args, **options))


@dataclass(frozen=True)
class Pair:
    """What is served."""

    certificate: bytes
    key: bytes = field(repr=False)


class WebhookWorld:
    """Watches every moment of it. `admin` only reads, and makes what a chart makes."""

    def __init__(
        self, admin: KubeClient, clocks: Clocks, settings: CertificateSettings = SETTINGS
    ) -> None:
        self.admin = admin
        self.clocks = clocks
        self.settings = settings
        self._served: list[tuple[float, Pair | None]] = []
        self._trusted: dict[str, list[tuple[float, bytes]]] = {}
        self._verified: set[tuple[bytes, Pair]] = set()
        self.generations: list[Pair] = []
        """Every pair that was ever to be served."""

    def keeper(self, client: KubeClient) -> CertificateKeeper:
        """A controller that has just begun to lead."""
        return CertificateKeeper(
            client,
            NAMESPACE,
            self.settings,
            utc_now=self.clocks.utc_now,
            monotonic_s=self.clocks.monotonic_s,
        )

    async def install(self) -> None:
        """What the chart makes: configurations without a bundle."""
        for resource, name in CONFIGURATIONS:
            hooks = [
                {
                    "name": f"{hook}.hami.io",
                    "clientConfig": {
                        "service": {"namespace": NAMESPACE, "name": "hami-dra-webhook"}
                    },
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
                for hook in ("one", "two")
            ]
            await self.admin.create(resource, {"metadata": {"name": name}, "webhooks": hooks})

    async def bundles(self) -> dict[str, bytes]:
        """What each webhook trusts now."""
        found = {}
        for resource, name in CONFIGURATIONS:
            try:
                configuration = await self.admin.get(resource, name)
            except NotFound:
                continue
            for hook in configuration["webhooks"]:
                text = hook["clientConfig"].get("caBundle", "")
                found[f"{resource.plural}/{hook['name']}"] = base64.b64decode(text)
        return found

    async def pair(self) -> Pair | None:
        """What is to be served now."""
        try:
            secret = await self.admin.get(
                SECRETS, self.settings.serving_secret, namespace=NAMESPACE
            )
        except NotFound:
            return None
        data = {key: base64.b64decode(text) for key, text in secret["data"].items()}
        return Pair(data["tls.crt"], data["tls.key"])

    async def look(self) -> None:
        """Note what there is now, and check that everybody understands everybody."""
        now_s = self.clocks.monotonic_s()
        pair = await self.pair()
        if pair and pair not in self.generations:
            self.generations.append(pair)
        _note(self._served, now_s, pair)
        for name, bundle in (await self.bundles()).items():
            _note(self._trusted.setdefault(name, []), now_s, bundle)
        self.check()

    def check(self) -> None:
        now_s = self.clocks.monotonic_s()
        served = _recent(self._served, now_s - self.settings.propagation_s)
        for history in self._trusted.values():
            for bundle in _recent(history, now_s - self.settings.bundle_settle_s):
                for pair in served:
                    if pair is not None:
                        self._check_pair(bundle, pair)

    def _check_pair(self, bundle: bytes, pair: Pair) -> None:
        if (bundle, pair) not in self._verified:
            handshake(bundle, pair)
            self._verified.add((bundle, pair))
        ends = x509.load_pem_x509_certificate(pair.certificate).not_valid_after_utc
        assert ends > self.clocks.true_now(), "an expired certificate may be served"

    def pass_by(self, seconds: float) -> None:
        """Time goes on."""
        self.clocks.pass_by(seconds)
        self.check()

    async def live(self, client: KubeClient, *, for_s: float) -> None:
        """Keep the certificates for so long; a controller that is killed is followed by another."""
        end_s = self.clocks.monotonic_s() + for_s
        keeper = self.keeper(client)
        while self.clocks.monotonic_s() < end_s:
            try:
                step = await keeper.step()
            except Conflict:
                step = None
            except Killed:
                keeper, step = self.keeper(client), None
            if isinstance(step, Wait):
                left_s = end_s - self.clocks.monotonic_s()
                self.pass_by(min(max(step.seconds, 1.0), LONGEST_WAIT_S, left_s))
            else:
                await self.look()


def _note(history: list[tuple[float, Any]], now_s: float, value: Any) -> None:
    if not history or history[-1][1] != value:
        history.append((now_s, value))


def _recent(history: list[tuple[float, Any]], since_s: float) -> list[Any]:
    """Values that were there at some moment since then."""
    ends = [start_s for start_s, _ in history[1:]] + [float("inf")]
    return [value for (_, value), end_s in zip(history, ends, strict=True) if end_s > since_s]


def handshake(bundle: bytes, pair: Pair, host: str = HOST) -> None:
    """TLS from end to end in memory; raises ssl.SSLError if the client does not trust."""
    server, client = _tls_server(pair), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    if bundle:
        client.load_verify_locations(cadata=bundle.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=host)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [near, far]
    for _ in range(10):
        for end in tuple(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
        if not waiting:
            return
    raise AssertionError("the handshake does not end")


def _tls_server(pair: Pair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    descriptor = os.memfd_create("pair")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(pair.certificate + pair.key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    return context
