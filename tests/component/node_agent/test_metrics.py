"""What the agent tells Prometheus of real tenants, name by name and label by label."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from casaba.simulation.gpu_host import SCENARIO_UUID
from tests.component.node_agent.live_node import DRIVER, IMAGE, LiveNode, Scrape, live_node, share
from tests.component.simulation.kubelets import NODE, shell, until
from tests.hami_metrics import OLD_VGPU_MONITOR as LEGACY
from tests.hami_metrics import VGPU_MONITOR as HAMI

GIB = 1 << 30

TENANT = """
cd "$FOLDER"
alloc_until_refused --hold < hold > held
echo over > over
busy --kernels=1ms --seconds=600 < /dev/null & busy=$!
read go < go
kill $busy
"""
"""Takes all it gets and keeps it, gives it back, is busy, ends: each at a word of the test."""

NAME = {"namespace": "default", "pod": "tenant", "container": "main"}
CARD = {**NAME, "device_uuid": SCENARIO_UUID, "vdevice_index": "0", "zone": "vGPU"}
SLICE = {**NAME, "claim": "half", "request": "gpu"}


async def test_a_tenants_series_while_it_waits_allocates_is_refused_is_busy_and_is_gone(
    short_folder: Path,
) -> None:
    async with live_node(short_folder) as live:
        await live.until_devices(["hami-gpu-0"])
        _check_idle_node(await live.scrape())
        pod = await start_tenant(live)
        _check_waiting(await live.scrape())
        with (short_folder / "hold").open("w"):
            await until("it was refused", lambda: _reads(short_folder / "held", "refused"))
            _check_holding(await live.scrape())
        await until("it gave all back", lambda: _reads(short_folder / "over", "over"))
        _check_given_back(await live.scrape())
        _check_busy(await until("it is busy", lambda: _busy(live)))
        await asyncio.to_thread((short_folder / "go").write_text, "go\n")
        await live.node.pod_in_phase(pod, "Succeeded")
        gone = await live.scrape()
        assert not [name for name, labels in gone.samples if dict(labels).get("pod")]
        _check_idle_node(gone)


async def start_tenant(live: LiveNode) -> dict[str, Any]:
    """A pod with half of the card; it waits for the test."""
    for name in ("go", "hold"):
        os.mkfifo(live.host.folder / name)
    await live.node.add_claim("half", share(), driver=DRIVER)
    env = [{"name": "FOLDER", "value": str(live.host.folder)}]
    container = shell(TENANT, "half", image=IMAGE, env=env)
    pod = await live.node.run_pod(container, claims=["half"], name="tenant")
    return await live.node.pod_in_phase(pod, "Running")


async def _reads(path: Path, word: str) -> bool:
    return path.exists() and word in path.read_text()


async def _busy(live: LiveNode) -> Scrape | None:
    scrape = await live.scrape()
    seen = scrape.value("casaba_launches_total", **SLICE) > 0
    told = scrape.named("casaba_slice_utilization_ratio")
    return scrape if seen and any(value > 0 for _, value in told) else None


def _check_idle_node(scrape: Scrape) -> None:
    assert scrape.named("hami_vgpu_memory_limit_bytes") == []
    assert scrape.value("casaba_published_devices", node=NODE) == 1
    assert scrape.value("casaba_kubelet_registered", node=NODE) == 1
    assert scrape.value("casaba_card_healthy", node=NODE, device="hami-gpu-0") == 1
    assert scrape.value("casaba_pods_told", node=NODE) == 1
    assert scrape.named("casaba_agent_problem") == []
    host = {"device_index": "0", "device_uuid": SCENARIO_UUID, "device_type": "NVIDIA-NVIDIA A10"}
    assert scrape.value("hami_host_gpu_utilization_ratio", node=NODE, **host) >= 0
    assert scrape.value("casaba_publishes_total", outcome="created") == 1
    assert scrape.value("casaba_publishes_total", outcome="failed") == 0
    for reason in ("no_room", "refused", "api_server", "host", "invalid", "other"):
        assert scrape.value("casaba_prepare_errors_total", reason=reason) == 0


def _check_waiting(scrape: Scrape) -> None:
    """From its preparation on: limits, and zeros."""
    assert scrape.value("hami_vgpu_memory_limit_bytes", **CARD) == 10 * GIB
    for name in ("hami_vgpu_memory_used_bytes", "hami_container_device_utilization_ratio"):
        assert scrape.value(name, **CARD) == 0
    assert scrape.named("hami_container_last_kernel_elapsed_seconds") == []
    assert scrape.value("casaba_slice_cores_ratio", **SLICE, gpu=SCENARIO_UUID) == 0.5
    assert scrape.value("casaba_refusals_total", **SLICE) == 0
    assert scrape.value("casaba_slice_user", **SLICE) == 1
    assert scrape.named("casaba_guard_alive") == []
    assert scrape.value("casaba_unguarded_processes", **NAME) == 0
    assert scrape.value("casaba_prepare_seconds_count", outcome="ok") == 1
    assert scrape.value("casaba_card_allowance_bytes", gpu=SCENARIO_UUID) == 512 << 20


def _check_holding(scrape: Scrape) -> None:
    for name in ("used", "limit", "buffer"):
        assert scrape.value(f"hami_vgpu_memory_{name}_bytes", **CARD) == 10 * GIB
    assert scrape.value("hami_container_device_memory_bytes", **CARD) == 10 * GIB
    assert scrape.value("hami_vgpu_memory_module_bytes", **CARD) == 0
    assert scrape.value("hami_host_gpu_memory_used_bytes", node=NODE) >= 10 * GIB
    assert scrape.value("casaba_refusals_total", **SLICE) == 1
    assert scrape.value("casaba_slice_processes", **SLICE) == 1
    assert scrape.value("casaba_slice_memory_kind_bytes", **SLICE, kind="device") == 10 * GIB
    assert scrape.value("casaba_guard_alive", **NAME) == 1


def _check_given_back(scrape: Scrape) -> None:
    assert scrape.value("hami_vgpu_memory_used_bytes", **CARD) == 0
    assert scrape.value("casaba_refusals_total", **SLICE) == 1


def _check_busy(scrape: Scrape) -> None:
    assert scrape.value("casaba_gpu_seconds_total", **SLICE, gpu=SCENARIO_UUID) > 0
    assert 0 < scrape.value("hami_container_device_utilization_ratio", **CARD) <= 100
    assert scrape.value("hami_container_last_kernel_elapsed_seconds", **CARD) >= 0
    assert scrape.kinds["casaba_gpu_seconds_total"] == "counter"
    told = {key[0]: key[1] for key in scrape.samples}
    assert {
        name: {key for key, _ in labels} for name, labels in told.items() if name in HAMI
    } == HAMI
    assert not told.keys() & LEGACY.keys()
    assert {dict(labels).get("zone") for name, labels in told.items() if name in HAMI} == {"vGPU"}
    hami = {name for name in told if name.startswith("hami_")}
    assert hami == HAMI.keys()


async def test_legacy_names_by_setting(short_folder: Path) -> None:
    async with live_node(short_folder, flags=["--legacy-metrics"]) as live:
        await live.until_devices(["hami-gpu-0"])
        await start_tenant(live)
        with (short_folder / "hold").open("w"):
            await until("it was refused", lambda: _reads(short_folder / "held", "refused"))
        scrape = await until("it is busy", lambda: _busy(live))
        told = {name: {key for key, _ in labels} for (name, labels) in scrape.samples}
        assert {name: labels for name, labels in told.items() if name in LEGACY} == LEGACY
        assert told.keys() >= HAMI.keys()
        ((labels, limit),) = scrape.named("vGPU_device_memory_limit_in_bytes")
        assert (labels["ctrname"], labels["vdeviceid"], limit) == ("main", "0", 10 * GIB)
        await asyncio.to_thread((short_folder / "go").write_text, "go\n")


async def test_a_tenant_that_writes_over_its_region_breaks_no_scrape(short_folder: Path) -> None:
    script = f"sleep 600 & echo $! > {short_folder}/pid; wait"
    async with live_node(short_folder) as live:
        await live.until_devices(["hami-gpu-0"])
        await live.node.add_claim("half", share(), driver=DRIVER)
        pod = await live.node.run_pod(
            shell(script, "half", image=IMAGE), claims=["half"], name="tenant"
        )
        await live.node.pod_in_phase(pod, "Running")
        (region,) = (short_folder / "run" / "claims").glob("*/gpu/region")
        whole = region.read_bytes()
        for content in (b"", b"\xff" * len(whole), whole[:12] + b"\xff" * (len(whole) - 12)):
            with region.open("r+b") as file:
                file.truncate(0)
                file.write(content)
            scrape = await live.scrape()
            assert scrape.value("hami_vgpu_memory_limit_bytes", **CARD) == 10 * GIB
            damaged = scrape.value("casaba_slice_accounting_damaged", **SLICE)
            assert damaged == (content[:12] != whole[:12])
        await live.node.delete(pod)


@pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces need root")
async def test_processes_with_a_slice_are_told_from_others_by_their_mounts(
    short_folder: Path,
) -> None:
    async with live_node(short_folder, isolation="namespace") as live:
        await live.until_devices(["hami-gpu-0"])
        await start_tenant(live)
        with (short_folder / "hold").open("w"):
            await until("it was refused", lambda: _reads(short_folder / "held", "refused"))
            scrape = await live.scrape()
            assert scrape.value("casaba_card_foreign_processes", node=NODE) == 0
            assert scrape.value("casaba_guard_alive", **NAME) == 1
            assert scrape.value("casaba_unguarded_processes", **NAME) == 0


async def test_probes(short_folder: Path) -> None:
    async with live_node(short_folder) as live:
        assert (await live.get("/healthz"))[0] == 200
        await live.until_said("kubelet.registered")
        assert (await live.get("/readyz")) == (200, "ok\n")


async def test_an_address_that_is_taken_is_told_and_claims_are_served_all_the_same(
    short_folder: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        flag = f"--metrics-address=127.0.0.1:{taken.getsockname()[1]}"
        async with live_node(short_folder, flags=[flag]) as live:
            assert "can't serve metrics on" in await live.until_event("DoorClosed")
            await live.until_devices(["hami-gpu-0"])
            await live.node.add_claim("half", share(), driver=DRIVER)
            pod = await live.node.run_pod(shell("true", "half", image=IMAGE), claims=["half"])
            await live.node.pod_in_phase(pod, "Succeeded")
