"""Two replicas of the whole controller: one leads, tells and writes; the other takes over."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from casaba.cli.controller import _parser, settings_from
from casaba.errors import InvalidInput
from casaba.kube import (
    LEASES,
    NAMESPACES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SECRETS,
    KubeClient,
    NotFound,
)
from casaba.model.ids import NodeName
from casaba.policy.leadership import LEADS
from casaba.policy.slices import slice_spec
from casaba.services.controllers.main import make_certificates_once, run_controller
from casaba.settings.controllers import (
    AllocationMetricsSettings,
    CertificateSettings,
    ControllerSettings,
)
from casaba.simulation.api_server import SimulatedApiServer
from casaba.simulation.api_server.faults import Refusal, Target
from tests.component.controllers.conftest import WAIT_S
from tests.unit.policy.allocation_metrics.clusters import DRIVER, gpu

NAMESPACE = "hami-system"
GIB = 1 << 30

pytestmark = pytest.mark.timeout(120)

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


@pytest.fixture
async def kubeconfig(server: SimulatedApiServer, client: KubeClient, tmp_path: Path) -> Path:
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(server.kubeconfig()))
    return path


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


def key(**labels: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


CONTAINER = key(
    zone="vGPU",
    namespace="default",
    node="edge-1",
    pod="tenant",
    container_index="0",
    device_uuid="GPU-00000001",
)
OF_HAMI = (
    "hami_gpu_memory_limit_bytes",
    "hami_gpu_core_limit_ratio",
    "hami_gpu_memory_allocated_bytes",
    "hami_gpu_shared_count",
    "hami_gpu_core_allocated_ratio",
    "hami_node_gpu_overview",
    "hami_node_gpu_memory_allocated_ratio",
    "hami_vgpu_memory_allocated_bytes",
    "hami_vgpu_core_allocated_ratio",
    "hami_build_info",
)
OF_HAMI_DRA = (
    "hami_dra_gpu_core_limit_ratio",
    "hami_dra_gpu_core_allocated_ratio",
    "hami_dra_gpu_memory_limit_bytes",
    "hami_dra_gpu_memory_allocated_bytes",
    "hami_dra_vgpu_core_allocated_ratio",
    "hami_dra_vgpu_memory_allocated_bytes",
)
OLD_OF_HAMI_DRA = (
    "GPUDeviceCoreLimit",
    "GPUDeviceMemoryLimit",
    "GPUDeviceCoreAllocated",
    "GPUDeviceMemoryAllocated",
    "vGPUDeviceCoreAllocated",
    "vGPUDeviceMemoryAllocated",
)
OLD_OF_HAMI = (
    "GPUDeviceSharedNum",
    "nodeGPUOverview",
    "nodeGPUMemoryPercentage",
    "vGPUMemoryAllocated",
    "vGPUCoreAllocated",
)
OWN = (
    "casaba_claims",
    "casaba_card_free_memory_bytes",
    "casaba_card_free_cores_ratio",
    "casaba_card_fragmentation_ratio",
    "casaba_lost_shares",
)
OF_EVERY_REPLICA = (
    "casaba_controller_leader",
    "casaba_templates_collected_total",
    "casaba_template_collection_errors_total",
    "hami_build_info",
)


async def test_the_leader_tells_what_is_allocated_as_long_as_it_is(
    kubeconfig: Path, client: KubeClient
) -> None:
    await make_tenant(client)
    async with Replica(settings(kubeconfig)) as replica:
        await until(replica.leads)

        async def tells() -> bool:
            return CONTAINER in (await replica.samples()).get("hami_vgpu_core_allocated_ratio", {})

        await until(tells)
        found = await replica.samples()
        assert set(found) == {*OF_HAMI, *OF_HAMI_DRA, *OLD_OF_HAMI_DRA, *OWN, *OF_EVERY_REPLICA}
        assert found["hami_vgpu_memory_allocated_bytes"] == {CONTAINER: 10 * GIB}
        assert found["hami_vgpu_core_allocated_ratio"] == {CONTAINER: 50}
        assert found["casaba_claims"] == {
            key(state="pending"): 0,
            key(state="allocated"): 0,
            key(state="reserved"): 1,
        }
        labels = dict(next(iter(found["hami_build_info"])))
        assert set(labels) == {
            "zone",
            "version",
            "revision",
            "build_date",
            "go_version",
            "compiler",
            "platform",
        }
        await client.delete(RESOURCE_CLAIMS, "share", namespace="default")

        async def forgets() -> bool:
            return not (await replica.samples()).get("hami_vgpu_core_allocated_ratio")

        await until(forgets)
        await client.delete(RESOURCE_SLICES, "edge-1")

        async def knows_no_card() -> bool:
            return not (await replica.samples()).get("hami_gpu_memory_limit_bytes")

        await until(knows_no_card)


@pytest.mark.parametrize(
    ("dra", "scheduler", "more"),
    [
        (False, False, ()),
        (True, False, OLD_OF_HAMI_DRA),
        (True, True, (*OLD_OF_HAMI_DRA, *OLD_OF_HAMI)),
        (False, True, (*OLD_OF_HAMI, *OLD_OF_HAMI_DRA[:4])),
    ],
)
async def test_old_names_are_told_by_setting(
    kubeconfig: Path, client: KubeClient, dra: bool, scheduler: bool, more: tuple[str, ...]
) -> None:
    await make_tenant(client)
    names = AllocationMetricsSettings(legacy_dra_names=dra, legacy_scheduler_names=scheduler)
    async with Replica(settings(kubeconfig, allocation_metrics=names)) as replica:
        await until(replica.leads)

        async def tells() -> bool:
            return bool((await replica.samples()).get("hami_vgpu_core_allocated_ratio"))

        await until(tells)
        assert set(await replica.samples()) == {
            *OF_HAMI,
            *OF_HAMI_DRA,
            *OWN,
            *OF_EVERY_REPLICA,
            *more,
        }


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


async def test_only_the_leader_tells_and_its_pod_is_labelled(
    kubeconfig: Path, client: KubeClient
) -> None:
    await make_tenant(client)
    async with two(kubeconfig, client) as (first, second):

        async def first_is_labelled() -> bool:
            return await labelled(client) == ["ctl-a"]

        await until(first_is_labelled)
        assert set(await second.samples()) == set(OF_EVERY_REPLICA)
        await first.stop()
        await until(second.leads)

        async def second_is_labelled() -> bool:
            return await labelled(client) == ["ctl-b"]

        await until(second_is_labelled)

        async def second_tells() -> bool:
            return "hami_gpu_memory_limit_bytes" in await second.samples()

        await until(second_tells)
    lease = await client.get(LEASES, "casaba-controller", namespace=NAMESPACE)
    assert lease.spec.holder_identity == ""
    assert await labelled(client) == []


async def test_the_label_of_a_dead_leader_is_taken_off(
    kubeconfig: Path, client: KubeClient
) -> None:
    for name in ("ctl-a", "ctl-b"):
        await make_pod(client, name, NAMESPACE)
    dead = {"metadata": {"labels": {LEADS: "true"}}}
    await client.patch(PODS, "ctl-b", dead, namespace=NAMESPACE)
    async with Replica(settings(kubeconfig, "ctl-a")):

        async def moved() -> bool:
            return await labelled(client) == ["ctl-a"]

        await until(moved)


async def test_a_label_that_cannot_be_written_is_tried_again(
    kubeconfig: Path, client: KubeClient, server: SimulatedApiServer
) -> None:
    await make_pod(client, "ctl-a", NAMESPACE)
    server.faults.add(Refusal(code=403), Target(verbs={"patch"}, subresources={"status"}), times=3)
    async with Replica(settings(kubeconfig, "ctl-a")):

        async def written() -> bool:
            return await labelled(client) == ["ctl-a"]

        await until(written)
    assert server.faults.met == 3


async def test_without_quotas_on_the_server_it_is_ready_all_the_same(kubeconfig: Path) -> None:
    async with Replica(settings(kubeconfig)) as replica:

        async def ready() -> bool:
            return bool(replica.port) and (await replica.read("/readyz"))[0] == 200

        await until(ready)
        assert (await replica.read("/healthz"))[0] == 200


async def test_it_keeps_the_certificates(kubeconfig: Path, client: KubeClient) -> None:
    wanted = CertificateSettings(check_s=0.1)
    async with Replica(settings(kubeconfig, certificates=wanted)) as replica:
        await until(replica.leads)

        async def told() -> bool:
            name = "casaba_controller_certificate_expiry_timestamp_seconds"
            return len((await replica.samples()).get(name, {})) == 2

        await until(told)
    await client.get(SECRETS, wanted.serving_secret, namespace=NAMESPACE)


async def test_certificates_once_is_refused_where_they_are_turned_off(kubeconfig: Path) -> None:
    with pytest.raises(InvalidInput, match="--no-certificates"):
        await make_certificates_once(settings(kubeconfig))


def command(kubeconfig: Path, *arguments: str) -> list[str]:
    program = "import sys; from casaba.cli.controller import main; sys.exit(main(sys.argv[1:]))"
    common = ["--namespace", NAMESPACE, "--kubeconfig", str(kubeconfig)]
    return [sys.executable, "-c", program, *common, *arguments]


async def test_a_signal_ends_the_process_in_order(kubeconfig: Path, client: KubeClient) -> None:
    process = await asyncio.create_subprocess_exec(
        *command(kubeconfig, "--metrics-address", "127.0.0.1:0"), stderr=asyncio.subprocess.PIPE
    )

    async def holder() -> str | None:
        try:
            lease = await client.get(LEASES, "casaba-controller", namespace=NAMESPACE)
        except NotFound:
            return None
        return lease.spec.holder_identity

    await until(holder)
    process.terminate()
    _, told = await process.communicate()
    assert process.returncode == 0, told.decode()
    assert await holder() == ""
    events = [json.loads(line)["event"] for line in told.splitlines()]
    assert "election.won" in events


async def test_the_job_before_an_installation(kubeconfig: Path, client: KubeClient) -> None:
    for _ in range(2):  # the second finds all in order
        process = await asyncio.create_subprocess_exec(
            *command(kubeconfig, "--certificates-once"), stderr=asyncio.subprocess.PIPE
        )
        _, told = await process.communicate()
        assert process.returncode == 0, told.decode()
        assert b"PRIVATE" not in told
    found = await client.get(SECRETS, CertificateSettings().serving_secret, namespace=NAMESPACE)
    assert found["type"] == "kubernetes.io/tls"


async def test_the_job_fails_with_a_sentence_where_it_may_not_write(
    kubeconfig: Path, server: SimulatedApiServer
) -> None:
    server.faults.add(Refusal(code=403, message="not yours"), Target(verbs={"create"}), times=None)
    process = await asyncio.create_subprocess_exec(
        *command(kubeconfig, "--certificates-once"), stderr=asyncio.subprocess.PIPE
    )
    _, told = await process.communicate()
    assert process.returncode == 4
    assert "casaba controller: create" in told.decode()
    assert "not yours" in told.decode()


def flags(*arguments: str) -> ControllerSettings:
    return settings_from(_parser().parse_args([*arguments]))


def test_the_flags_default_to_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_NAME", raising=False)
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    assert flags() == ControllerSettings(namespace="hami-system")


def test_flags_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "ctl-a")
    monkeypatch.setenv("POD_NAMESPACE", "gpu")
    found = flags(
        *("--no-certificates", "--no-legacy-metrics"),
        *("--collect-after", "30", "--collect-settle", "90"),
    )
    assert (found.namespace, found.pod_name, found.certificates) == ("gpu", "ctl-a", None)
    assert not found.allocation_metrics.legacy_dra_names
    assert (found.collection.period_s, found.collection.settle_s) == (30, 90)
    names = flags("--mutating-webhooks", "a, b,", "--validating-webhooks", "").certificates
    assert names is not None
    assert (names.mutating, names.validating) == (("a", "b"), ())


@pytest.mark.parametrize("days", [("400", "300"), ("90", "90"), ("0", "0")])
def test_lifetimes_that_cannot_be_kept_are_refused(days: tuple[str, str]) -> None:
    serving, authority = days
    with pytest.raises(InvalidInput, match="serving certificate can't live"):
        flags("--serving-days", serving, "--authority-days", authority)
