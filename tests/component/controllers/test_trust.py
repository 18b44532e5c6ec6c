"""Whom webhooks trust when somebody else makes their certificate."""

from __future__ import annotations

import base64
import logging

import pytest

from casaba.aiokit import running_beside
from casaba.errors import InvalidInput
from casaba.kube import NAMESPACES, SECRETS, KubeClient
from casaba.policy.certificates import ExtendBundle, TrimBundle, Wait
from casaba.services.controllers.certificate_making import new_authority
from casaba.services.controllers.trust import TrustKeeper
from casaba.settings.controllers import DAY_S, TrustSettings
from tests.component.controllers.clocks import Clocks
from tests.component.controllers.conftest import until
from tests.component.controllers.replica import until as eventually
from tests.component.controllers.webhook_world import NAMESPACE, WebhookWorld

SETTINGS = TrustSettings(secret="mine")

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def world(client: KubeClient, clocks: Clocks) -> WebhookWorld:
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    world = WebhookWorld(client, clocks)
    await world.install()
    return world


@pytest.fixture
def keeper(world: WebhookWorld, client: KubeClient) -> TrustKeeper:
    """A controller that has just begun to lead."""
    return TrustKeeper(client, NAMESPACE, SETTINGS, monotonic_s=world.clocks.monotonic_s)


def authority(world: WebhookWorld) -> bytes:
    return new_authority(world.clocks.utc_now(), 1000 * DAY_S).certificate_pem


async def give(world: WebhookWorld, content: bytes) -> None:
    """As Helm does, in the place of what there was."""
    body = {"metadata": {"name": "mine"}, "data": {"ca.crt": base64.b64encode(content).decode()}}
    await world.admin.apply(SECRETS, "mine", body, namespace=NAMESPACE)


async def trusted(world: WebhookWorld) -> set[bytes]:
    """The bundles of all webhooks, as far as they differ."""
    return set((await world.bundles()).values())


def parts(*authorities: bytes) -> list[str]:
    """Each certificate, whatever their order."""
    return sorted(b"".join(authorities).decode().split("-----BEGIN"))


async def test_the_authority_that_is_given_is_trusted(
    world: WebhookWorld, keeper: TrustKeeper
) -> None:
    given = authority(world)
    await give(world, given)
    assert isinstance(await keeper.step(), ExtendBundle)
    assert await trusted(world) == {given}
    assert isinstance(await keeper.step(), Wait)


async def test_who_was_trusted_before_is_so_until_every_replica_serves_the_other(
    world: WebhookWorld, keeper: TrustKeeper
) -> None:
    before, after = authority(world), authority(world)
    await give(world, before)
    await keeper.step()
    await give(world, after)
    await keeper.step()
    (together,) = await trusted(world)
    assert parts(together) == parts(before, after)
    step = await keeper.step()
    assert isinstance(step, Wait)
    assert 0 < step.seconds <= SETTINGS.propagation_s
    world.clocks.pass_by(SETTINGS.propagation_s)
    assert isinstance(await keeper.step(), TrimBundle)
    assert await trusted(world) == {after}


async def test_several_authorities_may_be_given(world: WebhookWorld, keeper: TrustKeeper) -> None:
    several = [authority(world), authority(world)]
    await give(world, b"".join(several))
    await keeper.step()
    (together,) = await trusted(world)
    assert parts(together) == parts(*several)
    assert isinstance(await keeper.step(), Wait)


@pytest.mark.parametrize("content", [b"", b"C", b"-----BEGIN CERTIFICATE-----\n"])
async def test_what_is_no_authority_changes_nothing(
    content: bytes, world: WebhookWorld, keeper: TrustKeeper
) -> None:
    given = authority(world)
    await give(world, given)
    await keeper.step()
    await give(world, content)
    with pytest.raises(InvalidInput, match=r"mine has no certificates .* as certs\.custom\.ca"):
        await keeper.step()
    assert await trusted(world) == {given}


async def test_it_goes_on_when_the_secret_comes_late(
    world: WebhookWorld, client: KubeClient, caplog: pytest.LogCaptureFixture
) -> None:
    given = authority(world)

    def is_told() -> bool:
        return "certificates.not_kept" in [record.getMessage() for record in caplog.records]

    async def is_trusted() -> bool:
        return await trusted(world) == {given}

    with caplog.at_level(logging.WARNING):
        async with running_beside(TrustKeeper(client, NAMESPACE, SETTINGS).run()):
            await until(is_told)
            await give(world, given)
            await eventually(is_trusted)
