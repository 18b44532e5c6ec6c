"""The agent on nodes where not all is as it should be: others' cards, late and replaced drivers."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from casaba.kube import NODES, KubeClient
from casaba.node.guard_library import native_dir
from casaba.wire import cdi
from tests.component.node_agent.live_node import (
    DRIVER,
    IMAGE,
    LiveNode,
    agent,
    live_node,
    share,
)
from tests.component.simulation.kubelets import NODE, shell

_NODES = NODES.decoded_as(dict)
FAST = ("--driver-check-s=0.05",)


async def offer_by_device_plugin(live: LiveNode, count: int) -> None:
    """What a kubelet says of a device plugin's cards, or says no more."""
    cards = {"nvidia.com/gpu": str(count)} if count else {"nvidia.com/gpu": None}
    status = {"capacity": cards, "allocatable": cards}
    await live.node.client.patch(_NODES, NODE, {"status": status}, subresource="status")


async def annotate(live: LiveNode, **values: str | None) -> None:
    """Annotations of the Node, by the part of their name after the slash."""
    annotations = {f"hami.io/{name.replace('_', '-')}": value for name, value in values.items()}
    await live.node.client.patch(_NODES, NODE, {"metadata": {"annotations": annotations}})


async def test_a_device_plugin_keeps_cards_from_being_published_while_claims_are_served(
    short_folder: Path,
) -> None:
    async with live_node(short_folder) as live:
        await live.until_devices(["hami-gpu-0"])
        await live.node.add_claim("half", share(), driver=DRIVER)
        tenant = shell("sleep 600 & wait", "half", image=IMAGE)
        running = await live.node.run_pod(tenant, claims=["half"])
        await live.node.pod_in_phase(running, "Running")
        await offer_by_device_plugin(live, 10)
        await live.until_devices([])
        message = await live.until_event("DevicePluginOffersCards")
        assert f"offers the cards of node {NODE} (nvidia.com/gpu: 10)" in message
        scrape = await live.scrape()
        assert scrape.value("casaba_published_devices", node=NODE) == 0
        assert scrape.value("casaba_agent_problem", reason="DevicePluginOffersCards") == 1
        await live.node.add_claim("other", share(memory="1Gi", cores="1"), driver=DRIVER)
        pod = await live.node.run_pod(shell("true", "other", image=IMAGE), claims=["other"])
        await live.node.pod_in_phase(pod, "Succeeded")
        assert await live.node.pod_in_phase(running, "Running")
        await offer_by_device_plugin(live, 0)
        await live.until_devices(["hami-gpu-0"])
        assert await live.until_event("CardsPublished")
        assert (await live.scrape()).named("casaba_agent_problem") == []


async def test_a_device_plugin_that_is_there_first_leaves_no_moment_with_cards(
    short_folder: Path,
) -> None:
    async with live_node(short_folder, with_agent=False) as live:
        await offer_by_device_plugin(live, 1)
        async with agent(live):
            await live.until_devices([])
            await live.until_said("slice.published")
            assert [line["devices"] for line in live.said("slice.published")] == [0]


async def test_an_old_hami_keeps_cards_from_being_published_until_it_is_silent(
    short_folder: Path,
) -> None:
    async with live_node(short_folder, flags=["--hami-silence-s=1.5"]) as live:
        await live.until_devices(["hami-gpu-0"])
        await annotate(live, node_nvidia_register="[{}]", node_handshake="Reported_now")
        await live.until_devices([])
        assert "hami.io/node-nvidia-register" in await live.until_event("HamiOffersCards")
        await live.until_devices(["hami-gpu-0"])  # nothing is written any more


async def test_an_agent_that_starts_when_hami_has_gone_does_not_wait_for_it(
    short_folder: Path,
) -> None:
    async with live_node(short_folder, with_agent=False) as live:
        await annotate(live, node_nvidia_register="[{}]", node_handshake="Reported_now")
        await backdate(live, timedelta(hours=1))
        async with agent(live):
            await live.until_devices(["hami-gpu-0"])
            assert [line["devices"] for line in live.said("slice.published")] == [1]
            await annotate(live, node_handshake="Reported_again")
            await live.until_devices([])
            assert await live.until_event("HamiOffersCards")


async def backdate(live: LiveNode, by: timedelta) -> None:
    """As if those who own the handshake had written it so much earlier; another writes now."""
    metadata = (await live.node.client.get(_NODES, NODE))["metadata"]
    sign = "f:hami.io/node-handshake"
    for entry in metadata["managedFields"]:
        if sign in entry["fieldsV1"].get("f:metadata", {}).get("f:annotations", {}):
            entry["time"] = f"{datetime.now(UTC) - by:%Y-%m-%dT%H:%M:%SZ}"
    touched = {"labels": {"touched": "yes"}, "managedFields": metadata["managedFields"]}
    async with KubeClient(live.node.server.admin_config(), field_manager="other") as other:
        await other.patch(_NODES, NODE, {"metadata": touched})


async def test_cards_come_back_at_once_when_hami_says_that_it_is_gone(short_folder: Path) -> None:
    async with live_node(short_folder, flags=["--hami-silence-s=3600"]) as live:
        await annotate(live, node_nvidia_register="[{}]", node_handshake="Reported_now")
        await live.until_event("HamiOffersCards")
        await live.until_devices([])
        await annotate(live, node_handshake="Deleted_2026.12.01 10:00:00")
        await live.until_devices(["hami-gpu-0"])


@asynccontextmanager
async def node_with_own_driver(folder: Path, *, present: bool) -> AsyncIterator[LiveNode]:
    """A node whose driver's root is a folder that the test can put there and take away."""
    driver = folder / "driver"
    if present:
        install_driver(driver)
    async with live_node(folder, driver=driver, flags=FAST) as live:
        yield live


def install_driver(root: Path) -> None:
    """As a driver container does: all at once, with other files than the one before."""
    new = root.with_name("driver.new")
    shutil.copytree(native_dir() / "simulated_driver", new)
    new.rename(root)


def remove_driver(root: Path) -> None:
    root.rename(root.with_name("driver.old"))
    shutil.rmtree(root.with_name("driver.old"))


async def test_a_driver_that_comes_late_is_waited_for_and_told_once(short_folder: Path) -> None:
    async with node_with_own_driver(short_folder, present=False) as live:
        message = await live.until_event("DriverMissing")
        assert f"no NVIDIA driver below {short_folder / 'driver'}" in message
        await live.until_said("kubelet.registered")
        await live.until_devices([])
        await live.node.add_claim("half", share(), driver=DRIVER)
        pod = await live.node.run_pod(shell("true", "half", image=IMAGE), claims=["half"])
        assert "the driver does not work yet" in await live.node.message(
            pod, "FailedPrepareDynamicResources"
        )
        install_driver(short_folder / "driver")
        await live.until_devices(["hami-gpu-0"])
        await live.node.pod_in_phase(pod, "Succeeded")
        assert "1 cards (driver 580.126.9)" in await live.until_event("DriverReady")
        assert len(live.said("agent.problem")) == 1
        assert (await live.scrape()).value("casaba_prepare_errors_total", reason="refused") >= 1


async def test_a_driver_that_is_replaced_is_described_anew(short_folder: Path) -> None:
    async with node_with_own_driver(short_folder, present=True) as live:
        await live.until_devices(["hami-gpu-0"])
        spec = live.host.paths.cdi_dir / cdi.CARD_SPEC_FILE
        before = spec.stat().st_ino
        remove_driver(short_folder / "driver")
        await live.until_devices([])
        await live.until_event("DriverMissing")
        assert (await live.scrape()).value("casaba_published_devices", node=NODE) == 0
        install_driver(short_folder / "driver")
        await live.until_devices(["hami-gpu-0"])
        assert spec.stat().st_ino != before
        assert (await live.scrape()).value("casaba_card_healthy", device="hami-gpu-0") == 1


async def test_a_driver_that_is_replaced_in_one_step_is_noticed_too(short_folder: Path) -> None:
    async with node_with_own_driver(short_folder, present=True) as live:
        await live.until_devices(["hami-gpu-0"])
        shutil.copytree(native_dir() / "simulated_driver", short_folder / "driver.other")
        root = short_folder / "driver"
        for name in ("libnvidia-ml.so.1", "libcuda.so.1"):
            (short_folder / "driver.other" / name).rename(root / name)
        await live.until_event("DriverChanged")
        assert len(live.said("cards.ready")) == 2
        assert live.said("agent.problem") == []
        await live.until_devices(["hami-gpu-0"])
