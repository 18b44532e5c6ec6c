"""The real agent and the real guard on a simulated node: the limit holds in its containers."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from casaba.kube import RESOURCE_SLICES
from casaba.node.guard_library import native_dir
from casaba.settings.simulation import LocalImage
from casaba.simulation.gpu_node import GpuNode, GpuNodeSettings
from tests.component.simulation.kubelets import NODE, NodeUnderTest, node_under_test, shell, until

DRIVER = "hami-core-gpu.project-hami.io"
SCRIPT = "nvidia-smi; alloc_until_refused; env | grep -c LD_PRELOAD; exit 0"


@asynccontextmanager
async def gpu_node(folder: Path, isolation: str) -> AsyncIterator[NodeUnderTest]:
    """A node with a virtual A10, kubelet and agent."""
    driver = native_dir() / "simulated_driver"
    host = GpuNode(settings=GpuNodeSettings(name=NODE), folder=folder, driver=driver)
    images = {"samples:1": LocalImage(folder=native_dir() / "samples")}
    async with node_under_test(
        folder,
        isolation=isolation,
        images=images,
        environment=host.environment(),
        cdi_dirs=(host.paths.cdi_dir,),
        labels={"gpu": "on"},
    ) as node:
        host.create(node.server.kubeconfig("agent", ["system:masters"]))
        async with node.running(), agent(host):
            yield node


@asynccontextmanager
async def agent(host: GpuNode) -> AsyncIterator[None]:
    """`casaba node-agent` as on a real node."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "casaba", "node-agent", *host.agent_flags()),
        env={**os.environ, **host.environment()},
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def published(node: NodeUnderTest) -> bool:
    listed = await node.client.list(RESOURCE_SLICES)
    return bool(listed.items)


@pytest.mark.parametrize("isolation", ["environment", "namespace"])
async def test_a_tenant_sees_and_gets_its_share(short_folder: Path, isolation: str) -> None:
    if isolation == "namespace" and os.geteuid() != 0:
        pytest.skip("mount namespaces need root")
    async with gpu_node(short_folder, isolation) as node:
        await until("the card is published", lambda: published(node))
        await node.add_claim("half", half_of_the_card(), driver=DRIVER)
        pod = await node.run_pod(shell(SCRIPT, "half", image="samples:1"), claims=["half"])
        await node.pod_in_phase(pod, "Succeeded")
        told = await node.logs(pod)
        assert "0MiB / 10240MiB" in told
        # Two pipes: the guard's words on stderr may come before or after.
        lines = [line for line in told.splitlines() if not line.startswith("[HAMI-core")]
        assert lines[-2].startswith("11264 MiB refused")
        preloaded = 1 if isolation == "environment" else 0
        assert lines[-1] == str(preloaded)
        budget = short_folder / "run" / "claims"
        assert list(budget.iterdir()) == []  # unprepared before the pod was told to be over


def half_of_the_card() -> dict[str, Any]:
    """What the scheduler gives for the documents' claim."""
    return {
        "request": "gpu",
        "driver": DRIVER,
        "pool": NODE,
        "device": "hami-gpu-0",
        "shareID": "3c0f1a52-0000-0000-0000-000000000000",
        "consumedCapacity": {"cores": "50", "memory": "10Gi"},
    }
