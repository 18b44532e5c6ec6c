"""Both of HAMi's name sets with all their labels, and ours, on a cluster that shows each rule."""

from collections.abc import Iterable

import pytest

from casaba.policy.allocation_metrics import (
    Account,
    Quota,
    ResourceNames,
    account,
    casaba_families,
    hami_dra_families,
    hami_families,
    legacy_dra_families,
    legacy_scheduler_families,
    quota_families,
    quota_lines,
)
from casaba.wire.exposition import Family
from tests.unit.policy.allocation_metrics.clusters import (
    claim,
    find,
    gpu,
    pod,
    result,
    slice_of,
)

GIB = 1 << 30
CARD_MIB = 23028
CARD_BYTES = CARD_MIB << 20
TYPE = "NVIDIA-NVIDIA A10"

Series = dict[tuple[tuple[str, str], ...], float]


@pytest.fixture(scope="module")
def cluster() -> Account:
    """Two nodes; card 0 of `a` is shared by two claims, one of which two pods share."""
    slices = [slice_of("a", gpu(1), gpu(0)), slice_of("b", gpu(2))]
    claims = [
        claim("shared", result("a", 0, memory="4Gi", cores="25"), pods=["one", "two"]),
        claim("own", result("a", 0, memory="2Gi", cores="10", request="x/sub"), pods=["one"]),
        claim("idle", result("b", 2, memory="1Gi", cores="5"), namespace="team-b"),
        claim("waiting"),
        claim("ahead"),
    ]
    pods = [
        pod("one", (), ("s", "o/x"), claims={"s": "shared", "o": "own"}),
        pod("two", ("s/gpu",), claims={"s": "shared"}, init=[("s",)]),
        pod("three", ("w",), claims={"w": "waiting"}),
    ]
    return account(slices, claims, find(*pods), pods)


def series(families: Iterable[Family]) -> dict[str, Series]:
    return {
        family.name: {
            tuple(sorted(zip(family.labels, values, strict=True))): value
            for values, value in family.samples
        }
        for family in families
    }


def one(**labels: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def hami_card(node: str, minor: int, **more: str) -> tuple[tuple[str, str], ...]:
    return one(
        zone="vGPU",
        node=node,
        device_uuid=f"GPU-{minor:08x}",
        device_index=str(minor),
        device_type=TYPE,
        **more,
    )


def hami_container(
    pod: str, container: str, namespace: str = "team-a"
) -> tuple[tuple[str, str], ...]:
    return one(
        zone="vGPU",
        namespace=namespace,
        node="a",
        pod=pod,
        container_index=container,
        device_uuid="GPU-00000000",
    )


def test_the_names_of_the_scheduler(cluster: Account) -> None:
    a0, a1, b2 = hami_card("a", 0), hami_card("a", 1), hami_card("b", 2)
    allocated = {("a", 0): 6 * GIB, ("a", 1): 0, ("b", 2): GIB}
    assert series(hami_families(cluster)) == {
        "hami_gpu_memory_limit_bytes": dict.fromkeys((a0, a1, b2), CARD_BYTES),
        "hami_gpu_core_limit_ratio": dict.fromkeys((a0, a1, b2), 100),
        "hami_gpu_memory_allocated_bytes": {
            hami_card(*at, device_cores="100"): value for at, value in allocated.items()
        },
        "hami_gpu_shared_count": {a0: 3, a1: 0, b2: 1},
        "hami_gpu_core_allocated_ratio": {a0: 35, a1: 0, b2: 5},
        "hami_node_gpu_overview": {
            hami_card(*at, device_cores="100", device_memory_limit=str(CARD_MIB)): value
            for at, value in allocated.items()
        },
        "hami_node_gpu_memory_allocated_ratio": {
            a0: 6 * GIB / CARD_BYTES,
            a1: 0,
            b2: GIB / CARD_BYTES,
        },
        "hami_node_gpu_mig_instance_info": {},
        "hami_vgpu_memory_allocated_bytes": {
            hami_container("one", "1"): 6 * GIB,
            hami_container("two", "0"): 4 * GIB,
            hami_container("two", "init-0"): 4 * GIB,
        },
        "hami_vgpu_core_allocated_ratio": {
            hami_container("one", "1"): 35,
            hami_container("two", "0"): 25,
            hami_container("two", "init-0"): 25,
        },
    }


def test_the_names_of_hami_dra_monitor(cluster: Account) -> None:
    def card(node: str, minor: int) -> tuple[tuple[str, str], ...]:
        return one(
            node=node,
            device_uuid=f"GPU-{minor:08x}",
            device_index=str(minor),
            device_name=f"hami-gpu-{minor}",
            device_type=TYPE,
        )

    def pod_of(name: str) -> tuple[tuple[str, str], ...]:
        return one(node="a", device_uuid="GPU-00000000", namespace="team-a", pod=name)

    a0, a1, b2 = card("a", 0), card("a", 1), card("b", 2)
    assert series(hami_dra_families(cluster)) == {
        "hami_dra_gpu_core_limit_ratio": {a0: 1, a1: 1, b2: 1},
        "hami_dra_gpu_core_allocated_ratio": {a0: 0.35, a1: 0, b2: 0.05},
        "hami_dra_gpu_memory_limit_bytes": {a0: CARD_BYTES, a1: CARD_BYTES, b2: CARD_BYTES},
        "hami_dra_gpu_memory_allocated_bytes": {a0: 6 * GIB, a1: 0, b2: GIB},
        "hami_dra_vgpu_core_allocated_ratio": {pod_of("one"): 0.35, pod_of("two"): 0.25},
        "hami_dra_vgpu_memory_allocated_bytes": {
            pod_of("one"): 6 * GIB,
            pod_of("two"): 4 * GIB,
        },
    }


def test_the_old_names_of_hami_dra_monitor(cluster: Account) -> None:
    def card(node: str, minor: int, **more: str) -> tuple[tuple[str, str], ...]:
        return one(
            nodeid=node,
            deviceuuid=f"GPU-{minor:08x}",
            deviceidx=str(minor),
            devicename=f"hami-gpu-{minor}",
            devicebrand="Nvidia",
            deviceproductname="NVIDIA A10",
            **more,
        )

    a0, a1, b2 = card("a", 0), card("a", 1), card("b", 2)
    one_, two = (card("a", 0, podnamespace="team-a", podname=name) for name in ("one", "two"))
    assert series(legacy_dra_families(cluster)) == {
        "GPUDeviceCoreLimit": {a0: 100, a1: 100, b2: 100},
        "GPUDeviceMemoryLimit": {a0: CARD_MIB, a1: CARD_MIB, b2: CARD_MIB},
        "GPUDeviceCoreAllocated": {a0: 35, a1: 0, b2: 5},
        "GPUDeviceMemoryAllocated": {a0: 6144, a1: 0, b2: 1024},
        "vGPUDeviceCoreAllocated": {one_: 35, two: 25},
        "vGPUDeviceMemoryAllocated": {one_: 6144, two: 4096},
    }


def test_the_old_names_of_the_scheduler(cluster: Account) -> None:
    def card(node: str, minor: int, **more: str) -> tuple[tuple[str, str], ...]:
        return one(
            zone="vGPU",
            nodeid=node,
            deviceuuid=f"GPU-{minor:08x}",
            deviceidx=str(minor),
            **more,
        )

    def typed(node: str, minor: int, **more: str) -> tuple[tuple[str, str], ...]:
        return card(node, minor, devicetype=TYPE, **more)

    def container(pod: str, index: str) -> tuple[tuple[str, str], ...]:
        return one(
            zone="vGPU",
            podnamespace="team-a",
            nodename="a",
            podname=pod,
            containeridx=index,
            deviceuuid="GPU-00000000",
        )

    places = (("a", 0), ("a", 1), ("b", 2))
    memory = dict(zip(places, (6 * GIB, 0, GIB), strict=True))
    common = {
        "GPUDeviceMemoryLimit": {typed(*at): CARD_BYTES for at in places},
        "GPUDeviceCoreLimit": {typed(*at): 100 for at in places},
        "GPUDeviceMemoryAllocated": {
            typed(*at, devicecores="100"): value for at, value in memory.items()
        },
        "GPUDeviceCoreAllocated": dict(zip((typed(*at) for at in places), (35, 0, 5), strict=True)),
    }
    own = {
        "GPUDeviceSharedNum": dict(zip((typed(*at) for at in places), (3, 0, 1), strict=True)),
        "nodeGPUOverview": {
            typed(*at, devicecores="100", devicememorylimit=str(CARD_MIB)): value
            for at, value in memory.items()
        },
        "nodeGPUMemoryPercentage": {card(*at): value / CARD_BYTES for at, value in memory.items()},
        "nodeGPUMigInstance": {},
        "vGPUMemoryAllocated": {
            container("one", "1"): 6 * GIB,
            container("two", "0"): 4 * GIB,
            container("two", "init-0"): 4 * GIB,
        },
        "vGPUCoreAllocated": {
            container("one", "1"): 35,
            container("two", "0"): 25,
            container("two", "init-0"): 25,
        },
    }
    assert series(legacy_scheduler_families(cluster, without_cards=False)) == common | own
    assert series(legacy_scheduler_families(cluster, without_cards=True)) == own


def test_our_own_names(cluster: Account) -> None:
    def card(node: str, minor: int) -> tuple[tuple[str, str], ...]:
        return tuple(label for label in hami_card(node, minor) if label[0] != "zone")

    a0, a1, b2 = card("a", 0), card("a", 1), card("b", 2)
    left = {a0: CARD_BYTES - 6 * GIB, a1: CARD_BYTES, b2: CARD_BYTES - GIB}
    cores = {a0: 0.65, a1: 1.0, b2: 0.95}
    found = series(casaba_families(cluster))
    fragmentation = found.pop("casaba_card_fragmentation_ratio")
    assert found == {
        "casaba_claims": {
            one(state="unused"): 1,
            one(state="pending"): 1,
            one(state="allocated"): 1,
            one(state="reserved"): 2,
        },
        "casaba_card_free_memory_bytes": left,
        "casaba_card_free_cores_ratio": cores,
        "casaba_lost_shares": {(): 0},
    }
    parts = {key: (left[key] / CARD_BYTES, cores[key]) for key in left}
    assert fragmentation == {
        key: pytest.approx(1 - min(both) / max(both)) for key, both in parts.items()
    }


NAMES = ResourceNames(
    cards="nvidia.com/gpu", memory="nvidia.com/gpumem", cores="nvidia.com/gpucores"
)


def test_quotas_in_the_classic_units_and_those_that_the_server_keeps(cluster: Account) -> None:
    devices = "hami-core-gpu.project-hami.io.deviceclass.resource.k8s.io/devices"
    quotas = [
        Quota(
            namespace="team-a",
            hard={
                "requests.nvidia.com/gpu": "4",
                "limits.nvidia.com/gpumem": "10k",
                "nvidia.com/gpucores": "200",
                "requests.cpu": "3",
                devices: "8",
            },
            used={devices: "2", "requests.cpu": "1"},
        ),
        Quota(namespace="team-a", hard={"limits.nvidia.com/gpumem": "8192"}, used={}),
        Quota(namespace="team-c", hard={"limits.nvidia.com/gpumem": "many"}, used={}),
        Quota(namespace="team-c", hard={"nvidia.com/gpu": "0"}, used={}),
    ]
    families = quota_families(quota_lines(quotas, cluster, NAMES), legacy=True)
    lines = {
        ("team-a", "nvidia.com/gpu"): ("4", 2),
        ("team-a", "nvidia.com/gpumem"): ("8192", 6144),
        ("team-a", "nvidia.com/gpucores"): ("200", 35),
        ("team-a", devices): ("8", 2),
        ("team-c", "nvidia.com/gpu"): ("0", 0),
    }
    assert series(families) == {
        "hami_resource_quota_used": {
            one(zone="vGPU", namespace=namespace, quota_name=name, limit=limit): used
            for (namespace, name), (limit, used) in lines.items()
        },
        "hami_resource_quota_limit": {
            one(zone="vGPU", namespace=namespace, quota_name=name): float(limit)
            for (namespace, name), (limit, _) in lines.items()
        },
        "QuotaUsed": {
            one(zone="vGPU", quotanamespace=namespace, quotaName=name, limit=limit): used
            for (namespace, name), (limit, used) in lines.items()
        },
    }
