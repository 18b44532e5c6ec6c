"""The door of every case: to the simulated kubelet, or with `--real` to a real one."""

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path, PurePath
from typing import Any

import pytest

from casaba.kube import NAMESPACES, SERVICE_ACCOUNTS, Conflict, KubeClient, load_config
from casaba.settings.simulation import SimulatedKubeletSettings
from casaba.simulation.api_server import SimulatedApiServer
from casaba.simulation.kubelet import SimulatedKubelet
from tests.conformance.kubelet.door import KubeletDoor

REAL_NODE = "edge-3"
SIMULATED_NODE = "node-1"
_KUBELET_DIR = PurePath("/var/lib/kubelet")


@pytest.fixture
async def door(on_real: bool, request: pytest.FixtureRequest) -> AsyncIterator[KubeletDoor]:
    """A door with a namespace of its own."""
    opened = _real_door(request.getfixturevalue("bed")) if on_real else _simulated_door()
    async with opened as door:
        namespace = {"metadata": {"name": door.namespace}}
        await door.client.create(NAMESPACES, namespace)
        with suppress(Conflict):  # a controller makes it too
            account = {"metadata": {"name": "default"}}
            await door.client.create(SERVICE_ACCOUNTS, account, namespace=door.namespace)
        try:
            yield door
        finally:
            await door.delete_pods()
            await door.delete_slices()
            await door.client.delete(NAMESPACES, door.namespace)
            for folder in (door.root / "plugins").glob(f"*{door.driver}"):
                shutil.rmtree(folder)
            (door.cdi_dir / f"{door.vendor}.json").unlink(missing_ok=True)


def _names() -> dict[str, str]:
    """Names that no other test uses."""
    vendor = f"c{secrets.token_hex(3)}"
    return {"vendor": vendor, "driver": f"{vendor}.example.com", "namespace": f"kubelet-{vendor}"}


@asynccontextmanager
async def _simulated_door() -> AsyncIterator[KubeletDoor]:
    with tempfile.TemporaryDirectory(prefix="casaba-") as folder:
        async with SimulatedApiServer() as server, KubeClient(server.admin_config()) as client:
            node = _SimulatedNode(server, client, Path(folder))
            await node.start()
            try:
                yield KubeletDoor(
                    client=client,
                    node=SIMULATED_NODE,
                    root=node.settings.root,
                    inside=node.settings.root,
                    cdi_dir=node.settings.cdi_dirs[0],
                    stop=node.stop,
                    start=node.start,
                    **_names(),
                )
            finally:
                await node.stop()


class _SimulatedNode:
    """A kubelet in this process; what a real one does once a minute is not hurried."""

    def __init__(self, server: SimulatedApiServer, client: KubeClient, folder: Path) -> None:
        self._server = server
        self._client = client
        self._task: asyncio.Task[None] | None = None
        self.settings = SimulatedKubeletSettings(
            node_name=SIMULATED_NODE,
            root=folder / "kubelet",
            cdi_dirs=(folder / "cdi",),
            isolation="environment",
            plugin_poll_s=0.02,
            registration_retry_s=0.1,
            wiping_delay_s=0.5,
            health_retry_s=0.2,
            crash_backoff_s=0.1,
        )

    async def start(self) -> None:
        kubelet = SimulatedKubelet(self._client, self._server.authority, self.settings)
        self._task = asyncio.create_task(kubelet.run())
        while not any(self._server.objects("nodes")):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None


@asynccontextmanager
async def _real_door(bed: Any) -> AsyncIterator[KubeletDoor]:
    node = bed.node(REAL_NODE)
    async with KubeClient(load_config(bed.kubeconfig)) as client:
        yield KubeletDoor(
            client=client,
            node=REAL_NODE,
            root=node.path(str(_KUBELET_DIR)),
            inside=_KUBELET_DIR,
            cdi_dir=node.path("/var/run/cdi"),
            stop=lambda: asyncio.to_thread(node.stop, "kubelet"),
            start=lambda: asyncio.to_thread(node.start, "kubelet"),
            **_names(),
        )
