"""Tenants without a cap, whose guards measure nothing while they are alone: the card tells."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from casaba.simulation.gpu_host import SCENARIO_UUID
from tests.component.node_agent.live_node import DRIVER, IMAGE, LiveNode, live_node, share
from tests.component.simulation.kubelets import shell, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces need root")

BUSY_S = 2.0
"""So much more of the card's time shows that it is counted."""

SOME_S = 0.05
"""So much gets even a neighbour without any guarantee."""

HALF_BUSY_PERCENT = 50.0
BUSY = """
busy --kernels=1ms --seconds=600 < /dev/null & busy=$!
read go < {fifo}
kill $busy
"""


async def start_busy(live: LiveNode, name: str, cores: str) -> dict[str, Any]:
    """A pod that keeps the card busy until its fifo is written to."""
    fifo = live.host.folder / name
    os.mkfifo(fifo)
    await live.node.add_claim(name, share(memory="1Gi", cores=cores), driver=DRIVER)
    script = BUSY.format(fifo=fifo)
    pod = await live.node.run_pod(shell(script, name, image=IMAGE), claims=[name], name=name)
    return await live.node.pod_in_phase(pod, "Running")


class Follower:
    """Scrapes a slice again and again; its counter never goes back."""

    def __init__(self, live: LiveNode, pod: str) -> None:
        self.live, self.pod = live, pod
        self.total_s, self.percent = 0.0, 0.0

    async def __call__(self) -> None:
        scrape = await self.live.scrape()
        total_s = scrape.value("casaba_gpu_seconds_total", pod=self.pod, gpu=SCENARIO_UUID)
        assert total_s >= self.total_s
        self.total_s = total_s
        told = scrape.named("hami_container_device_utilization_ratio")
        self.percent = sum(value for labels, value in told if labels["pod"] == self.pod)

    async def until_more(self, more_s: float = BUSY_S) -> None:
        """Until it used more of the card."""
        await self()
        wanted_s = self.total_s + more_s

        async def there() -> bool:
            await self()
            return self.total_s >= wanted_s

        await until(f"{self.pod} used more of the card's time", there)


@pytest.mark.parametrize("cores", ["0", "100"])
async def test_a_busy_tenant_without_a_cap_is_told_alone_and_with_a_neighbour(
    short_folder: Path, cores: str
) -> None:
    async with live_node(short_folder, isolation="namespace") as live:
        await live.until_devices(["hami-gpu-0"])
        lone = Follower(live, "lone")
        pod = await start_busy(live, "lone", cores)
        await lone.until_more()

        async def is_busy() -> bool:
            await lone()
            return lone.percent > HALF_BUSY_PERCENT

        await until("it is told as busy", is_busy)
        neighbour = await start_busy(live, "neighbour", "0")
        beside = Follower(live, "neighbour")
        await beside.until_more(SOME_S)
        await lone.until_more()
        await asyncio.to_thread((short_folder / "neighbour").write_text, "go\n")
        await live.node.pod_in_phase(neighbour, "Succeeded")
        await lone.until_more()
        await asyncio.to_thread((short_folder / "lone").write_text, "go\n")
        await live.node.pod_in_phase(pod, "Succeeded")
