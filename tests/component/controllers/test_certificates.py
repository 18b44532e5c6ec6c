"""At every moment, whoever trusts a bundle can verify what is served, whoever dies, and when."""

import base64
import dataclasses
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from casaba.aiokit import running_beside
from casaba.kube import EVENTS, NAMESPACES, SECRETS, EventRecorder, KubeClient
from casaba.services.controllers.certificate_making import new_authority
from casaba.services.controllers.certificates import CertificateKeeper
from casaba.settings.controllers import DAY_S, CertificateSettings
from casaba.simulation.api_server import SimulatedApiServer
from casaba.simulation.api_server.faults import Fault, LostAnswer, Refusal, Target, Weather
from tests.component.controllers.clocks import Clocks
from tests.component.controllers.conftest import until
from tests.component.controllers.webhook_world import (
    CONFIGURATIONS,
    NAMESPACE,
    SETTINGS,
    DoomedClient,
    Killed,
    WebhookWorld,
    handshake,
)

LIFE_S = 230 * DAY_S
"""Installation, some renewals, another authority, and the end of the first."""

INSTALLATION = 4
"""Writes until something can be served."""

WRITES = INSTALLATION + 3 + 6
"""Of an undisturbed life: 3 renewals, 6 of the change of authority."""

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def doomed(server: SimulatedApiServer) -> AsyncIterator[DoomedClient]:
    async with DoomedClient(server.admin_config()) as client:
        yield client


@pytest.fixture
async def world(client: KubeClient, clocks: Clocks) -> WebhookWorld:
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    return WebhookWorld(client, clocks)


async def authorities(world: WebhookWorld) -> dict[str, int]:
    """How many each webhook trusts."""
    return {
        name: bundle.count(b"BEGIN CERTIFICATE") for name, bundle in (await world.bundles()).items()
    }


async def test_a_whole_life(world: WebhookWorld, doomed: DoomedClient) -> None:
    await world.install()
    await world.live(doomed, for_s=LIFE_S)
    assert doomed.writes == WRITES
    assert len(world.generations) == 5
    assert set((await authorities(world)).values()) == {1}
    assert len(await authorities(world)) == 4


async def test_the_names_are_the_services(world: WebhookWorld, doomed: DoomedClient) -> None:
    await world.install()
    await world.live(doomed, for_s=60)
    pair = await world.pair()
    assert pair is not None
    bundle = next(iter((await world.bundles()).values()))
    handshake(bundle, pair, host=f"hami-dra-webhook.{NAMESPACE}.svc.cluster.local")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(bundle, pair, host="other.hami-system.svc")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(new_authority(world.clocks.utc_now(), DAY_S).certificate_pem, pair)


async def test_the_key_of_the_authority_is_not_where_the_webhook_reads(
    world: WebhookWorld, doomed: DoomedClient, client: KubeClient
) -> None:
    await world.live(doomed, for_s=60)
    secrets = {
        name: await client.get(SECRETS, name, namespace=NAMESPACE)
        for name in (SETTINGS.serving_secret, SETTINGS.authority_secret)
    }
    assert {name: set(secret["data"]) for name, secret in secrets.items()} == {
        SETTINGS.serving_secret: {"tls.crt", "tls.key", "ca.crt"},
        SETTINGS.authority_secret: {"ca.crt", "ca.key"},
    }
    assert secrets[SETTINGS.serving_secret]["type"] == "kubernetes.io/tls"


@pytest.mark.parametrize("number", range(1, WRITES + 1))
@pytest.mark.parametrize("when", ["before", "after"])
async def test_killed_at_any_write_another_goes_on(
    world: WebhookWorld, doomed: DoomedClient, number: int, when: str
) -> None:
    async def die(write: int) -> None:
        if write == number:
            raise Killed

    if when == "before":
        doomed.before_write = die
    else:
        doomed.after_write = die
    await world.install()
    installing = number <= INSTALLATION
    await world.live(doomed, for_s=DAY_S if installing else LIFE_S)
    assert set((await authorities(world)).values()) == {1}
    assert len(world.generations) == (1 if installing else 5)


@pytest.mark.parametrize(
    ("number", "meanwhile_s"),
    [(number, 60.0 if number % 2 else LIFE_S) for number in range(1, WRITES + 1)],
)
async def test_a_former_leader_that_wakes_up_late_breaks_nothing(
    world: WebhookWorld,
    doomed: DoomedClient,
    client: KubeClient,
    number: int,
    meanwhile_s: float,
) -> None:
    """It has read and decided, then another leads for a while, then it writes."""

    async def sleep(write: int) -> None:
        if write == number:
            await world.live(client, for_s=meanwhile_s)

    doomed.before_write = sleep
    await world.install()
    await world.live(doomed, for_s=DAY_S if number <= INSTALLATION else LIFE_S)
    await world.live(client, for_s=DAY_S)
    assert set((await authorities(world)).values()) == {1}


@pytest.mark.parametrize("days", [100, 3650, -1000, -4000])
@pytest.mark.parametrize("at_day", [0.0, 190.0])
async def test_a_clock_that_jumps_and_comes_back(
    world: WebhookWorld, doomed: DoomedClient, days: int, at_day: float
) -> None:
    await world.install()
    await world.live(doomed, for_s=at_day * DAY_S + 60)
    world.clocks.wrong_by_s = days * DAY_S
    await world.live(doomed, for_s=300.0)
    world.clocks.wrong_by_s = 0.0
    await world.live(doomed, for_s=20 * DAY_S)
    assert set((await authorities(world)).values()) == {1}


async def test_it_goes_on_through_refusals_and_lost_answers(
    world: WebhookWorld, server: SimulatedApiServer, client: KubeClient
) -> None:
    chances: list[tuple[float, Fault]] = [
        (0.1, Refusal(code=500)),
        (0.1, LostAnswer()),
        (0.1, LostAnswer(done=True)),
    ]
    settings = CertificateSettings(bundle_settle_s=0.01, check_s=0.01, propagation_s=0.1)
    await world.install()
    verbs = {"create", "patch", "get"}
    server.faults.storm(
        Weather(seed=7, chances=chances, target=Target(verbs=verbs, resources={"secrets"}))
    )
    keeper = CertificateKeeper(client, NAMESPACE, settings)
    async with running_beside(keeper.run()):
        await until(lambda: len(keeper.expiries) == 2)
    server.faults.clear()
    pair = await world.pair()
    assert pair is not None
    for bundle in (await world.bundles()).values():
        handshake(bundle, pair)


def _rsa_pair() -> dict[str, bytes]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return {"tls.crt": b"not a certificate", "tls.key": pem}


def _two_halves() -> dict[str, bytes]:
    now = Clocks().utc_now()
    one, other = new_authority(now, DAY_S), new_authority(now, DAY_S)
    return {"tls.crt": one.certificate_pem, "tls.key": other.key_pem}


def _strangers() -> dict[str, bytes]:
    made = new_authority(Clocks().utc_now(), DAY_S)
    return {"tls.crt": made.certificate_pem, "tls.key": made.key_pem}


GARBAGE = {
    "empty": {"tls.crt": b"", "tls.key": b""},
    "noise": {"tls.crt": b"\xff\x00", "tls.key": b"-----BEGIN"},
    "rsa": _rsa_pair(),
    "two halves": _two_halves(),
    "a stranger's": _strangers(),
    "a false signer": {**_strangers(), "ca.crt": _strangers()["tls.crt"]},
}


async def put_secret(client: KubeClient, name: str, data: dict[str, bytes], **other: Any) -> None:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    body = {"metadata": {"name": name}, "data": encoded, **other}
    await client.create(SECRETS, body, namespace=NAMESPACE)


@pytest.mark.parametrize("what", list(GARBAGE))
@pytest.mark.parametrize("other", [{"type": "kubernetes.io/tls"}, {}, {"immutable": True}])
async def test_what_is_no_good_in_the_secrets_is_replaced_and_told(
    world: WebhookWorld,
    client: KubeClient,
    caplog: pytest.LogCaptureFixture,
    what: str,
    other: dict[str, Any],
) -> None:
    await world.install()
    await put_secret(client, SETTINGS.serving_secret, GARBAGE[what], **other)
    theirs = {key.replace("tls", "ca"): value for key, value in GARBAGE[what].items()}
    authority = {} if other.get("type") else other
    await put_secret(client, SETTINGS.authority_secret, theirs, **authority)
    keeper = world.keeper(client)
    for _ in range(12):
        await keeper.step()
        world.clocks.pass_by(20.0)
    pair = await world.pair()
    assert pair is not None
    for bundle in (await world.bundles()).values():
        handshake(bundle, pair)
    assert "certificates.written" in caplog.messages


async def test_people_are_told_by_an_event(
    world: WebhookWorld, client: KubeClient, clocks: Clocks
) -> None:
    await put_secret(client, SETTINGS.serving_secret, GARBAGE["noise"])
    events = EventRecorder(client, component="test")
    keeper = CertificateKeeper(
        client,
        NAMESPACE,
        SETTINGS,
        events=events,
        utc_now=clocks.utc_now,
        monotonic_s=clocks.monotonic_s,
    )
    async with running_beside(events.run()):
        await keeper.step()
        await keeper.step()
        await events.sent()
    (event,) = (await client.list(EVENTS, namespace=NAMESPACE)).items
    assert event.reason == "CertificateIssued"
    assert event.message.endswith("it holds no PEM certificate with its key")


async def test_a_bundle_that_an_upgrade_took_away_is_put_back(
    world: WebhookWorld, doomed: DoomedClient, client: KubeClient
) -> None:
    await world.install()
    await world.live(doomed, for_s=60)
    for resource, name in CONFIGURATIONS:
        patch = [{"op": "remove", "path": f"/webhooks/{i}/clientConfig/caBundle"} for i in (0, 1)]
        await client.patch(resource, name, patch)
    keeper = world.keeper(client)
    await keeper.step()
    pair = await world.pair()
    assert pair is not None
    for bundle in (await world.bundles()).values():
        handshake(bundle, pair)


async def test_others_bundles_are_kept_until_ours_is_served(
    world: WebhookWorld, doomed: DoomedClient, client: KubeClient
) -> None:
    """Such as cert-manager's, where its part is turned off."""
    theirs = new_authority(world.clocks.utc_now(), DAY_S).certificate_pem
    await world.install()
    resource, name = CONFIGURATIONS[0]
    value = base64.b64encode(theirs).decode()
    await client.patch(
        resource, name, [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": value}]
    )
    await world.live(doomed, for_s=SETTINGS.propagation_s / 2)
    assert theirs in (await world.bundles())["mutatingwebhookconfigurations/one.hami.io"]
    await world.live(doomed, for_s=2 * SETTINGS.propagation_s)
    assert set((await authorities(world)).values()) == {1}


ONCE = CertificateSettings(bundle_settle_s=0.05)


async def test_once_before_anything_is_installed(client: KubeClient, world: WebhookWorld) -> None:
    await CertificateKeeper(client, NAMESPACE, ONCE).run_once()
    pair = await world.pair()
    assert pair is not None
    secret = await client.get(SECRETS, ONCE.authority_secret, namespace=NAMESPACE)
    handshake(base64.b64decode(secret["data"]["ca.crt"]), pair)


async def test_once_after_an_installation_that_lost_its_secrets(
    client: KubeClient, world: WebhookWorld
) -> None:
    await world.install()
    await CertificateKeeper(client, NAMESPACE, ONCE).run_once()
    pair = await world.pair()
    assert pair is not None
    for bundle in (await world.bundles()).values():
        handshake(bundle, pair)


async def test_once_where_all_is_well_writes_nothing(
    doomed: DoomedClient, world: WebhookWorld
) -> None:
    await CertificateKeeper(doomed, NAMESPACE, ONCE).run_once()
    before = doomed.writes
    await CertificateKeeper(doomed, NAMESPACE, ONCE).run_once()
    assert doomed.writes == before


async def test_once_leaves_to_the_controller_what_is_only_due(
    doomed: DoomedClient, world: WebhookWorld, clocks: Clocks
) -> None:
    """The job of an upgrade may not know the webhooks that trust the authority."""
    await world.install()
    await world.live(doomed, for_s=60)
    before = doomed.writes
    clocks.pass_by(70 * DAY_S)
    blind = dataclasses.replace(SETTINGS, mutating=(), validating=())
    keeper = CertificateKeeper(
        doomed, NAMESPACE, blind, utc_now=clocks.utc_now, monotonic_s=clocks.monotonic_s
    )
    await keeper.run_once()
    assert doomed.writes == before


async def test_once_replaces_what_has_expired(doomed: DoomedClient, world: WebhookWorld) -> None:
    await CertificateKeeper(doomed, NAMESPACE, ONCE).run_once()
    before = doomed.writes
    later = Clocks(elapsed_s=100 * DAY_S)
    await CertificateKeeper(doomed, NAMESPACE, ONCE, utc_now=later.utc_now).run_once()
    assert doomed.writes == before + 1
