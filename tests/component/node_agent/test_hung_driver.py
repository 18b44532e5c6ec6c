"""A driver that hangs in NVML while the agent runs: told, and nothing else waits for it."""

import asyncio
import threading
from pathlib import Path

import aiohttp
import pytest

from casaba.kube import About, EventRecorder, KubeClient, KubeConfig
from casaba.model.gpu import Gpu
from casaba.services.node_agent import cards
from casaba.services.node_agent.cards import CardKeeper
from casaba.services.node_agent.status import AgentStatus
from casaba.settings.node_agent import NodeAgentSettings
from tests.component.node_agent.live_node import DRIVER, IMAGE, LiveNode, Scrape, live_node, share
from tests.component.simulation.kubelets import NODE, shell, until

SCRAPES = 12
"""More than the default executor has threads on a machine with few cores."""


def hang_the_driver(live: LiveNode) -> None:
    """Every answer of NVML takes a minute from now on."""
    path = live.host.cards_dir / "cards.conf"
    path.write_text("nvml_delay_ms = 60000\n" + path.read_text())


async def scrapes(live: LiveNode, count: int) -> list[Scrape]:
    """So many at once, over connections of their own."""
    port = (await live.until_said("metrics.served"))["port"]

    async def one(session: aiohttp.ClientSession) -> Scrape:
        async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            text = await answer.text()
            assert answer.status == 200, text
            return Scrape.of(text)

    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(session)) for _ in range(count)]
    return [task.result() for task in tasks]


async def test_a_driver_that_hangs_is_told_at_once_and_claims_are_served(
    short_folder: Path,
) -> None:
    async with live_node(short_folder) as live:
        await live.until_devices(["hami-gpu-0"])
        (healthy,) = await scrapes(live, 1)
        assert healthy.value("casaba_card_healthy", node=NODE) == 1
        hang_the_driver(live)
        await until("the card is told as silent", lambda: _is_silent(live))
        for scrape in await scrapes(live, SCRAPES):
            assert scrape.value("casaba_card_healthy", node=NODE) == 0
            assert scrape.named("hami_host_gpu_memory_used_bytes") == []
            assert scrape.named("casaba_card_foreign_processes") == []
        await live.node.add_claim("half", share(), driver=DRIVER)
        pod = await live.node.run_pod(shell("true", "half", image=IMAGE), claims=["half"])
        await live.node.pod_in_phase(pod, "Succeeded")
        assert live.said("cards.silent")


async def _is_silent(live: LiveNode) -> bool:
    (scrape,) = await scrapes(live, 1)
    return scrape.value("casaba_card_healthy", node=NODE) == 0


async def test_who_looks_for_cards_waits_for_a_hung_driver_once_and_tells(
    short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    changes: list[int] = []
    go = threading.Event()

    def hang(_: NodeAgentSettings) -> tuple[Gpu, ...]:
        calls.append(1)
        go.wait()
        return ()

    monkeypatch.setattr(cards, "make_cards_ready", hang)
    client = KubeClient(KubeConfig(origin="test", server="http://127.0.0.1:1"))
    about = About(api_version="v1", kind="Node", name=NODE)
    status = AgentStatus(EventRecorder(client, component="test"), about)
    settings = NodeAgentSettings(node_name=NODE, driver_root=short_folder, driver_answer_s=0.01)
    keeper = CardKeeper(settings, status, lambda: changes.append(1))
    try:
        for _ in range(20):
            await keeper.look()
            assert keeper.missing is not None
            assert "does not answer" in keeper.missing
        assert (len(calls), len(changes)) == (1, 1)
        assert [one.reason for one in status.problems] == ["DriverMissing"]
    finally:
        go.set()

    async def found() -> bool:
        await keeper.look()
        return keeper.missing is None

    await until("the driver answers again", found)
