"""The collector on the simulated API server: what nobody uses goes, and nothing else."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from casaba.aiokit import running_beside
from casaba.kube import (
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    Informer,
    KubeClient,
    Listed,
    Resource,
)
from casaba.policy.collection import LAST_USED, MADE_BY, WEBHOOK
from casaba.services.controllers.cluster import ClusterView
from casaba.services.controllers.collector import TemplateCollector
from casaba.settings.controllers import CollectionSettings
from casaba.simulation.api_server import SimulatedApiServer
from casaba.simulation.api_server.faults import LostAnswer, Refusal, Target
from tests.component.controllers.clocks import Clocks
from tests.component.controllers.conftest import until

TEMPLATE = "casaba-0123456789abcdef"
OTHER = "casaba-fedcba9876543210"
NAMESPACE = "default"
PERIOD_S, SETTLE_S, LOOKS_S = 600.0, 120.0, 100.0


class MeddlingClient(KubeClient):
    """Lets something happen after the pods were listed."""

    after_pods: Callable[[], Awaitable[object]] | None = None

    async def list(self, resource: Resource[Any], **selection: Any) -> Listed[Any]:
        listed = await super().list(resource, **selection)
        if resource.plural == PODS.plural and self.after_pods is not None:
            await self.after_pods()
        return listed


class Scene:
    """A collector, the cluster that it follows, and the webhook's part."""

    def __init__(self, client: MeddlingClient, clocks: Clocks) -> None:
        self.client = client
        self.clocks = clocks
        self.view = ClusterView(client)
        self.collector = self.new_collector()

    def new_collector(self) -> TemplateCollector:
        return TemplateCollector(
            self.client,
            self.view.templates,
            self.view.pods,
            CollectionSettings(period_s=PERIOD_S, settle_s=SETTLE_S),
            utc_now=self.clocks.utc_now,
            monotonic_s=self.clocks.monotonic_s,
        )

    async def make(
        self, name: str = TEMPLATE, *, stamp: str | None = "now", label: str | None = WEBHOOK
    ) -> None:
        """Make a template as the webhook does."""
        text = _stamp(self.clocks.utc_now()) if stamp == "now" else stamp
        metadata = {
            "name": name,
            "labels": {MADE_BY: label} if label else {},
            "annotations": {LAST_USED: text} if text else {},
        }
        body = {"metadata": metadata, "spec": {"spec": {"devices": {"requests": []}}}}
        await self.client.create(RESOURCE_CLAIM_TEMPLATES, body, namespace=NAMESPACE)

    async def renew(self, name: str = TEMPLATE) -> None:
        """Renew the stamp as the webhook does."""
        patch = {"metadata": {"annotations": {LAST_USED: _stamp(self.clocks.utc_now())}}}
        await self.client.patch(RESOURCE_CLAIM_TEMPLATES, name, patch, namespace=NAMESPACE)

    async def run_pod(self, name: str, template: str = TEMPLATE) -> None:
        """A pod that uses a template."""
        body = {
            "metadata": {"name": name},
            "spec": {
                "containers": [{"name": "c", "image": "i"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
            },
        }
        await self.client.create(PODS, body, namespace=NAMESPACE)

    async def finish_pod(self, name: str, phase: str = "Succeeded") -> None:
        patch = {"status": {"phase": phase}}
        await self.client.patch(PODS, name, patch, namespace=NAMESPACE, subresource="status")

    async def delete_pod(self, name: str) -> None:
        await self.client.delete(PODS, name, namespace=NAMESPACE, grace_period_s=0)

    async def settled(self) -> None:
        """Wait until the caches are what the server has."""
        for resource, informer in (
            (RESOURCE_CLAIM_TEMPLATES, self.view.templates),
            (PODS, self.view.pods),
        ):
            listed = await KubeClient.list(self.client, resource.decoded_as(dict))
            versions = {
                item["metadata"]["name"]: item["metadata"]["resourceVersion"]
                for item in listed.items
                if resource is PODS or MADE_BY in item["metadata"].get("labels", {})
            }
            await until(partial(_has, informer, versions))

    async def templates(self) -> set[str]:
        listed = await self.client.list(RESOURCE_CLAIM_TEMPLATES)
        return {item["metadata"]["name"] for item in listed.items}

    async def look(self) -> float:
        """Let the collector look once, with caches that are up to date."""
        await self.settled()
        return await self.collector.collect()

    async def period_passes(self) -> None:
        """As the collector lives through a period, and some time more."""
        await self.look()
        for _ in range(int(PERIOD_S / LOOKS_S) + 1):
            self.clocks.pass_by(LOOKS_S)
            await self.look()


def _has(informer: Informer[Any], versions: dict[str, str]) -> bool:
    return versions == {
        key.name: it.metadata.resource_version for key, it in informer.objects.items()
    }


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


@asynccontextmanager
async def _scene(server: SimulatedApiServer, clocks: Clocks) -> AsyncIterator[Scene]:
    async with MeddlingClient(server.admin_config()) as client:
        scene = Scene(client, clocks)
        async with running_beside(scene.view.run()):
            await scene.view.read()
            yield scene


@pytest.fixture
async def scene(server: SimulatedApiServer, clocks: Clocks) -> AsyncIterator[Scene]:
    async with _scene(server, clocks) as scene:
        yield scene


async def test_of_a_pod_that_was_refused_nothing_is_left(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    await scene.make()
    await scene.period_passes()
    assert await scene.templates() == set()
    assert "template.deleted" in caplog.messages
    assert scene.collector.deleted == 1


async def test_of_a_deleted_job_nothing_is_left(scene: Scene) -> None:
    await scene.make()
    await scene.run_pod("job-1")
    for _ in range(3):
        await scene.period_passes()
        assert await scene.templates() == {TEMPLATE}
    await scene.delete_pod("job-1")
    await scene.period_passes()
    assert await scene.templates() == set()


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_of_a_pod_that_has_ended_nothing_is_left(scene: Scene, phase: str) -> None:
    await scene.make()
    await scene.run_pod("job-1")
    await scene.finish_pod("job-1", phase)
    await scene.period_passes()
    assert await scene.templates() == set()


@pytest.mark.parametrize("stamp", [None, "", "soon", "2099-01-01T00:00:00Z", "0000-00-00"])
async def test_of_a_create_that_failed_half_way_nothing_is_left(
    scene: Scene, stamp: str | None
) -> None:
    await scene.make(stamp=stamp)
    await scene.period_passes()
    assert await scene.templates() == set()


async def test_one_in_use_and_others_stay(scene: Scene) -> None:
    await scene.make()
    await scene.run_pod("p")
    await scene.make("mine", label=None)
    await scene.make("copied", label=WEBHOOK)
    await scene.make(OTHER)
    await scene.period_passes()
    assert await scene.templates() == {TEMPLATE, "mine", "copied"}


async def test_one_that_is_used_again_and_again_stays(scene: Scene) -> None:
    await scene.make()
    for _ in range(5):
        scene.clocks.pass_by(PERIOD_S - 1)
        await scene.look()
        assert await scene.templates() == {TEMPLATE}
        await scene.renew()
    await scene.period_passes()
    assert await scene.templates() == set()


async def test_one_renewed_after_the_last_look_at_the_pods_is_not_lost(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    await scene.make()
    await scene.look()
    scene.clocks.pass_by(PERIOD_S)
    await scene.settled()
    scene.client.after_pods = scene.renew
    await scene.collector.collect()
    scene.client.after_pods = None
    assert await scene.templates() == {TEMPLATE}
    assert "template.kept" in caplog.messages


async def test_one_made_anew_under_the_same_name_is_not_lost(scene: Scene) -> None:
    async def made_anew() -> None:
        await scene.client.delete(RESOURCE_CLAIM_TEMPLATES, TEMPLATE, namespace=NAMESPACE)
        await scene.make()

    await scene.make()
    await scene.look()
    scene.clocks.pass_by(PERIOD_S)
    await scene.settled()
    scene.client.after_pods = made_anew
    await scene.collector.collect()
    assert await scene.templates() == {TEMPLATE}


async def test_a_pod_that_the_cache_has_not_heard_of_counts(
    server: SimulatedApiServer, clocks: Clocks
) -> None:
    async with MeddlingClient(server.admin_config()) as client:
        scene = Scene(client, clocks)
        async with running_beside(scene.view.run()):
            await scene.view.read()
            await scene.make()
            await scene.look()
        # nobody follows the server any more
        clocks.pass_by(PERIOD_S)
        await scene.run_pod("late")
        await scene.collector.collect()
        assert await scene.templates() == {TEMPLATE}


async def test_a_new_leader_first_gets_to_know_what_there_is(scene: Scene) -> None:
    await scene.make()
    scene.clocks.pass_by(10 * PERIOD_S)
    await scene.settled()
    assert await scene.collector.collect() == SETTLE_S
    assert await scene.templates() == {TEMPLATE}
    scene.clocks.pass_by(SETTLE_S)
    await scene.collector.collect()
    assert await scene.templates() == set()


async def test_a_clock_that_jumps_costs_no_pod_its_template(scene: Scene) -> None:
    await scene.make()
    await scene.look()
    scene.clocks.wrong_by_s = timedelta(days=400).total_seconds()
    scene.clocks.pass_by(SETTLE_S - 1)
    await scene.look()
    assert await scene.templates() == {TEMPLATE}
    await scene.run_pod("p")
    await scene.period_passes()
    assert await scene.templates() == {TEMPLATE}


@pytest.mark.parametrize("verb", ["list", "delete"])
@pytest.mark.parametrize("fault", [Refusal(code=403), Refusal(code=500), LostAnswer()])
async def test_what_fails_is_told_and_done_later(
    scene: Scene,
    server: SimulatedApiServer,
    caplog: pytest.LogCaptureFixture,
    verb: str,
    fault: Refusal | LostAnswer,
) -> None:
    await scene.make()
    await scene.look()
    scene.clocks.pass_by(PERIOD_S)
    await scene.settled()
    server.faults.add(fault, Target(verbs={verb}), times=None)
    await scene.collector.collect()
    server.faults.clear()
    assert scene.collector.failed == 1
    assert {"template.pods_not_listed", "template.not_deleted"} & set(caplog.messages)
    await scene.look()
    assert await scene.templates() == set()


async def test_it_looks_by_itself(server: SimulatedApiServer) -> None:
    async with MeddlingClient(server.admin_config()) as client:
        view = ClusterView(client)
        settings = CollectionSettings(period_s=0.2, settle_s=0.1, check_s=0.02)
        collector = TemplateCollector(client, view.templates, view.pods, settings)
        scene = Scene(client, Clocks())
        await scene.make()
        await scene.make(OTHER)
        await scene.run_pod("p", OTHER)
        async with running_beside(view.run(), collector.run()):
            await until(lambda: collector.deleted == 1)
            await scene.finish_pod("p")
            await until(lambda: collector.deleted == 2)
        assert await scene.templates() == set()
