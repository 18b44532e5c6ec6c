"""Replicas of the controller, and tenants for them to see."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from casaba.kube import (
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    KubeClient,
)
from casaba.model.ids import NodeName
from casaba.policy.leadership import LEADS
from casaba.policy.slices import slice_spec
from casaba.services.controllers.main import run_controller
from casaba.settings.controllers import (
    ControllerSettings,
)
from tests.component.controllers.conftest import NAMESPACE, WAIT_S
from tests.unit.policy.allocation_metrics.clusters import DRIVER, gpu

GIB = 1 << 30

OF_EVERY_REPLICA = (
    "casaba_controller_leader",
    "casaba_templates_collected_total",
    "casaba_template_collection_errors_total",
    "hami_build_info",
)
"""Metrics of one that does not lead."""

Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


class Replica:
    """One process, as far as a test needs it to be one."""

    def __init__(self, settings: ControllerSettings) -> None:
        self.settings = settings
        self.port = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Replica":
        def listening(port: int) -> None:
            self.port = port

        self._task = asyncio.create_task(run_controller(self.settings, listening=listening))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """As SIGTERM does."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def read(self, path: str) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.port}{path}") as answer,
        ):
            return answer.status, await answer.text()

    async def samples(self) -> Samples:
        """Everything that it tells; fails for a series that is there twice."""
        status, text = await self.read("/metrics")
        assert status == 200
        found: Samples = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                series = found.setdefault(sample.name, {})
                key = tuple(sorted(sample.labels.items()))
                assert key not in series, f"{sample.name}{key} twice"
                series[key] = sample.value
        return found

    async def leads(self) -> bool:
        if not self.port:
            return False
        return (await self.samples())["casaba_controller_leader"][()] == 1


async def until(condition: Any) -> None:
    async with asyncio.timeout(WAIT_S):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def settings(kubeconfig: Path, pod: str | None = None, **other: Any) -> ControllerSettings:
    return ControllerSettings(
        namespace=NAMESPACE,
        kubeconfig=kubeconfig,
        pod_name=pod,
        metrics_address="127.0.0.1:0",
        retry_period_s=0.05,
        label_check_s=0.05,
        **{"certificates": None, **other},
    )


async def make_pod(client: KubeClient, name: str, namespace: str, **spec: Any) -> Any:
    containers = [{"name": "c", "image": "i", **spec.pop("container", {})}]
    body = {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}
    return await client.create(PODS.decoded_as(dict), body, namespace=namespace)


async def make_tenant(client: KubeClient) -> None:
    """A node with two cards, and a pod that has a share of the second."""
    spec = slice_spec(NodeName("edge-1"), (gpu(0), gpu(1)), 1)
    await client.create(RESOURCE_SLICES, {"metadata": {"name": "edge-1"}, "spec": spec})
    request = {
        "name": "gpu",
        "exactly": {
            "deviceClassName": DRIVER,
            "capacity": {"requests": {"cores": "50", "memory": "10Gi"}},
        },
    }
    body = {"metadata": {"name": "share"}, "spec": {"devices": {"requests": [request]}}}
    await client.create(RESOURCE_CLAIMS, body, namespace="default")
    pod = await make_pod(
        client,
        "tenant",
        "default",
        container={"resources": {"claims": [{"name": "g"}]}},
        resourceClaims=[{"name": "g", "resourceClaimName": "share"}],
    )
    result = {
        "request": "gpu",
        "driver": DRIVER,
        "pool": "edge-1",
        "device": "hami-gpu-1",
        "shareID": "3c0f1a52-0000-4000-8000-000000000000",
        "consumedCapacity": {"cores": "50", "memory": "10Gi"},
    }
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "tenant", "uid": pod["metadata"]["uid"]}],
    }
    await client.patch(
        RESOURCE_CLAIMS, "share", {"status": status}, namespace="default", subresource="status"
    )


@asynccontextmanager
async def two(kubeconfig: Path, client: KubeClient) -> AsyncIterator[tuple[Replica, Replica]]:
    """The leader, and the other one."""
    async with AsyncExitStack() as stack:
        for name in ("ctl-a", "ctl-b"):
            await make_pod(client, name, NAMESPACE)
        first = await stack.enter_async_context(Replica(settings(kubeconfig, "ctl-a")))
        await until(first.leads)
        second = await stack.enter_async_context(Replica(settings(kubeconfig, "ctl-b")))

        async def ready() -> bool:
            return bool(second.port) and (await second.read("/readyz"))[0] == 200

        await until(ready)
        yield first, second


async def labelled(client: KubeClient) -> list[str]:
    listed = await client.list(PODS, namespace=NAMESPACE, label_selector=f"{LEADS}=true")
    return [pod.metadata.name for pod in listed.items]
