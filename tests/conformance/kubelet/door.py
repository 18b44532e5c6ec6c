"""The way in to a kubelet, simulated or real: its sockets' folders, and pods put on its node."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from casaba.kube import RESOURCE_SLICES
from tests.component.simulation.plugins import ScriptedPlugin, no_error
from tests.conformance.kubelet.workloads import Object, Workloads

_SLICES = RESOURCE_SLICES.decoded_as(dict)

Restart = Callable[[], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class KubeletDoor(Workloads):
    """One node, with a namespace, a driver name and a CDI vendor that are the test's own."""

    root: Path
    """The kubelet's root directory as this process sees it."""
    inside: PurePath
    """The same as the kubelet sees it."""
    cdi_dir: Path
    stop: Restart
    start: Restart
    """The two halves of a restart of the kubelet's process."""
    vendor: str

    @property
    def registry(self) -> Path:
        """Where registration sockets are looked for."""
        return self.root / "plugins_registry"

    def seen(self, path: Path) -> PurePath:
        """One of our paths below the root as the kubelet sees it."""
        return self.inside / path.relative_to(self.root)

    def plugin(self, **changes: Any) -> ScriptedPlugin:
        """A plugin of the test's driver; use as `async with`."""
        name = f"{self.vendor}-{next(self.numbers)}"
        folder = self.root / "plugins" / changes.get("driver", self.driver)
        fields: dict[str, Any] = {
            "folder": folder,
            "registry": self.registry,
            "driver": self.driver,
            "name": name,
            "endpoint": str(self.seen(folder / f"{name}.sock")),
            "prepare": plain_device,
            **changes,
        }
        return ScriptedPlugin(**fields)

    @asynccontextmanager
    async def serving(self, **changes: Any) -> AsyncIterator[ScriptedPlugin]:
        """A registered plugin; at the end the test's pods go before it does."""
        async with self.plugin(**changes) as plugin:
            assert await self.first_word(plugin) == ""
            try:
                yield plugin
            finally:
                plugin.prepare, plugin.unprepare = plain_device, no_error
                if plugin.gate is not None:
                    plugin.gate.set()
                await self.delete_pods()

    async def first_word(self, plugin: ScriptedPlugin) -> str:
        """What a plugin hears first of its registration: an error, or an empty text."""

        async def told() -> list[str]:
            return plugin.told

        return str((await self.until("the plugin hears of its registration", told))[0])

    async def called(self, plugin: ScriptedPlugin, *methods: str) -> list[Any]:
        """The requests, once these methods have been called, and no others."""

        async def done() -> bool:
            await self.help_pods()
            return len(plugin.calls) >= len(methods)

        await self.until(f"calls of {methods}", done)
        assert [call[1] for call in plugin.calls] == list(methods), plugin.calls
        return plugin.requests

    async def called_in_the_end(self, plugin: ScriptedPlugin, method: str) -> Any:
        """The latest request, once it is of a method."""

        async def done() -> bool:
            await self.help_pods()
            return bool(plugin.calls) and plugin.calls[-1][1] == method

        await self.until(f"a call of {method}", done)
        return plugin.requests[-1]

    async def slices(self) -> list[str]:
        """Names of the slices of the test's driver."""
        selector = f"spec.driver={self.driver}"
        listed = await self.client.list(_SLICES, field_selector=selector)
        return [item["metadata"]["name"] for item in listed.items]

    async def has_no_slices(self) -> bool:
        """Whether the test's driver has no slices any more."""
        return await self.slices() == []

    async def delete_slices(self) -> None:
        """Delete the slices of the test's driver, if a test has left them."""
        await self.client.delete_collection(_SLICES, field_selector=f"spec.driver={self.driver}")

    async def add_slice(self) -> None:
        """A slice of the test's driver on this node."""
        spec = {
            "driver": self.driver,
            "nodeName": self.node,
            "pool": {"name": self.node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        }
        await self.client.create(_SLICES, {"metadata": {"name": self.driver}, "spec": spec})

    def write_cdi_spec(self, *names: str) -> dict[str, str]:
        """Devices that each set a variable of their name; returns their ids by name."""
        kind = f"{self.vendor}.example/dev"
        spec = {
            "cdiVersion": "0.5.0",
            "kind": kind,
            "devices": [
                {"name": name, "containerEdits": {"env": [f"DEV_{name}=yes"]}} for name in names
            ],
        }
        self.cdi_dir.mkdir(parents=True, exist_ok=True)
        (self.cdi_dir / f"{self.vendor}.json").write_text(json.dumps(spec))
        return {name: f"{kind}={name}" for name in names}


def plain_device(request: Any) -> Object:
    """An answer: one device for every claim, with nothing for the runtime to do."""
    device = {"request_names": ["gpu"], "pool_name": "pool", "device_name": "gpu-0"}
    return {claim.uid: {"devices": [device]} for claim in request.claims}
