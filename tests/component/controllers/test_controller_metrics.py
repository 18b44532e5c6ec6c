"""What a controller tells of allocation, and under which names."""

from pathlib import Path

import pytest

from casaba.kube import (
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    KubeClient,
)
from casaba.settings.controllers import (
    AllocationMetricsSettings,
)
from tests.component.controllers.replica import (
    GIB,
    OF_EVERY_REPLICA,
    Replica,
    make_tenant,
    settings,
    until,
)

pytestmark = pytest.mark.timeout(120)


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
            key(state="unused"): 0,
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
