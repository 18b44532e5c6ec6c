"""A simulated node with virtual cards, its kubelet, and `casaba node-agent` as a real process."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from casaba.kube import EVENTS, NODES, RESOURCE_SLICES
from casaba.node.guard_library import native_dir
from casaba.settings.simulation import LocalImage
from casaba.simulation.gpu_node import GpuNode, GpuNodeSettings
from tests.component.simulation.kubelets import NODE, NodeUnderTest, node_under_test, until

DRIVER = "hami-core-gpu.project-hami.io"
IMAGE = "samples:1"

Labels = frozenset[tuple[str, str]]

_NODES, _SLICES = NODES.decoded_as(dict), RESOURCE_SLICES.decoded_as(dict)
_EVENTS = EVENTS.decoded_as(dict)


@dataclass
class LiveNode:
    """The node, and the agent that runs on it now."""

    node: NodeUnderTest
    host: GpuNode
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def said(self, event: str) -> list[dict[str, Any]]:
        """The agent's log lines of an event."""
        lines = self.log.read_text().splitlines()
        told = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in told if line["event"] == event]

    async def until_said(self, event: str, times: int = 1) -> dict[str, Any]:
        """The last of so many log lines of an event."""

        async def there() -> dict[str, Any] | None:
            found = self.said(event)
            return found[-1] if len(found) >= times else None

        return await until(f"the agent says {event}", there)  # type: ignore[no-any-return]

    async def get(self, path: str) -> tuple[int, str]:
        """Ask the metrics door."""
        port = (await self.until_said("metrics.served"))["port"]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.status, await answer.text()

    async def scrape(self) -> "Scrape":
        """All samples, as Prometheus understands them."""
        status, text = await self.get("/metrics")
        assert status == 200, text
        return Scrape.of(text)

    async def devices(self) -> list[str] | None:
        """The names of the devices that are published; None: there is no slice."""
        listed = await self.node.client.list(_SLICES)
        if not listed.items:
            return None
        return [
            device["name"] for one in listed.items for device in one["spec"].get("devices") or ()
        ]

    async def until_devices(self, wanted: list[str] | None) -> None:
        """Until these are published."""

        async def there() -> bool:
            return await self.devices() == wanted

        await until(f"{wanted} are published", there)

    async def events(self, reason: str) -> list[str]:
        """The messages of the Node's events of a reason."""
        uid = (await self.node.client.get(_NODES, NODE))["metadata"]["uid"]
        listed = await self.node.client.list(_EVENTS, namespace="default")
        return [
            item["message"]
            for item in listed.items
            if item["reason"] == reason and item["involvedObject"].get("uid") == uid
        ]

    async def until_event(self, reason: str) -> str:
        """The first message of the Node's events of a reason."""

        async def there() -> str | None:
            return next(iter(await self.events(reason)), None)

        return await until(f"an event {reason}", there)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Scrape:
    """Samples by name and labels."""

    samples: dict[tuple[str, Labels], float]
    kinds: dict[str, str]

    @classmethod
    def of(cls, text: str) -> "Scrape":
        """Parse; one series must not come twice."""
        samples: dict[tuple[str, Labels], float] = {}
        kinds = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = (sample.name, frozenset(sample.labels.items()))
                assert key not in samples, key
                samples[key] = sample.value
                kinds[sample.name] = family.type
        return cls(samples, kinds)

    def named(self, name: str) -> list[tuple[dict[str, str], float]]:
        """The samples of one name."""
        return [(dict(labels), value) for (found, labels), value in self.samples.items()
                if found == name]  # fmt: skip

    def value(self, name: str, **labels: str) -> float:
        """The only sample of a name that has these labels, among others."""
        found = [value for had, value in self.named(name) if labels.items() <= had.items()]
        assert len(found) == 1, (name, labels, found)
        return found[0]


@asynccontextmanager
async def live_node(
    folder: Path,
    *,
    cards: Sequence[str] = ("A10",),
    isolation: str = "environment",
    flags: Sequence[str] = (),
    driver: Path | None = None,
    with_agent: bool = True,
) -> AsyncIterator[LiveNode]:
    """A node with its kubelet and, unless a test starts it itself, its agent."""
    settings = GpuNodeSettings(name=NODE, cards=tuple(cards))
    host = GpuNode(
        settings=settings, folder=folder, driver=driver or native_dir() / "simulated_driver"
    )
    async with node_under_test(
        folder,
        isolation=isolation,
        images={IMAGE: LocalImage(folder=native_dir() / "samples")},
        environment=host.environment(),
        cdi_dirs=(host.paths.cdi_dir,),
        labels={"gpu": "on"},
    ) as node:
        host.create(node.server.kubeconfig("agent", ["system:masters"]))
        live = LiveNode(node=node, host=host, log=folder / "agent.log")
        async with node.running():
            if not with_agent:
                yield live
                return
            async with agent(live, flags):
                yield live


@asynccontextmanager
async def agent(live: LiveNode, flags: Sequence[str] = ()) -> AsyncIterator[None]:
    """`casaba node-agent` until the block ends; what flags say comes last."""
    with live.log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "casaba", "node-agent", *live.host.agent_flags(), *flags),
            env={**os.environ, **live.host.environment()},
            stderr=output,
        )
    try:
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        assert process.returncode == 0, live.log.read_text()


def share(
    *, memory: str = "10Gi", cores: str = "50", request: str = "gpu", minor: int = 0
) -> dict[str, Any]:
    """What the scheduler gives for one request."""
    return {
        "request": request,
        "driver": DRIVER,
        "pool": NODE,
        "device": f"hami-gpu-{minor}",
        "shareID": "3c0f1a52-0000-0000-0000-000000000000",
        "consumedCapacity": {"cores": cores, "memory": memory},
    }
