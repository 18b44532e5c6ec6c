"""The registered DRA plugins: which one to call, whose ResourceSlices to wipe.

    add ──► connect ──► connected ──► lost ──► connect again every second
                            │           │
              pending wipe is dropped   last one of its driver: wipe its slices after 30 s

Source: KEP-4381.
"""

import asyncio
import logging
from asyncio import TaskGroup, TimerHandle
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from casaba.errors import CasabaError
from casaba.net.dra_client import DraConnection, PluginCallFailed, PluginInfo
from casaba.simulation.kubelet import registration_rules as rules

log = logging.getLogger(__name__)

RECONNECT_S = 1.0

Wipe = Callable[[str], Coroutine[Any, Any, None]]
"""Deletes this node's ResourceSlices of a driver, in the end; never raises KubeError."""


class DriverNotRegistered(CasabaError):
    """No plugin of a driver has been registered."""


class Plugin:
    """One registered plugin."""

    def __init__(self, info: PluginInfo, service: str, changed: Callable[[str], None]) -> None:
        self.driver = info.name
        self.endpoint = info.endpoint
        self.supported_versions = info.supported_versions
        self._changed = changed
        self._news = asyncio.Event()
        self.connection = DraConnection(info.endpoint, service, self._note_change)

    async def keep_connected(self) -> None:
        """Never returns; the plugin's coming and going is noticed without a call."""
        while True:
            try:
                self._news.clear()
                await self.connection.connect()
                await self._news.wait()
            except PluginCallFailed as error:
                log.debug("plugin.not_connected", extra={"reason": str(error)})
                await asyncio.sleep(RECONNECT_S)

    def _note_change(self) -> None:
        self._news.set()
        self._changed(self.driver)


class Plugins:
    """All plugins of the node. `run` must run for as long as they are used."""

    def __init__(self, wipe: Wipe, wiping_delay_s: float) -> None:
        self._wipe = wipe
        self._wiping_delay_s = wiping_delay_s
        self._of_driver: dict[str, list[Plugin]] = {}
        self._keepers: dict[Plugin, asyncio.Task[None]] = {}
        self._pending_wipes: dict[str, TimerHandle] = {}
        self._group: TaskGroup | None = None
        self.watch: Callable[[Plugin], Awaitable[None]] | None = None
        """What else runs for as long as a plugin is registered: its health stream."""

    async def run(self) -> None:
        """Never returns. If cancelled: connections are closed, nothing is wiped."""
        async with TaskGroup() as group:
            self._group = group
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None
                for handle in self._pending_wipes.values():
                    handle.cancel()

    def plugin(self, driver: str) -> Plugin:
        """The newest connected plugin of a driver, else its newest; raises DriverNotRegistered."""
        if not (found := self._of_driver.get(driver)):
            raise DriverNotRegistered(f"DRA driver {driver} is not registered")
        connected = [plugin for plugin in found if plugin.connection.connected]
        return (connected or found)[-1]

    def add(self, info: PluginInfo) -> Plugin:
        """Take a plugin into use; raises RegistrationRefused."""
        service = rules.chosen_service(info)
        found = self._of_driver.setdefault(info.name, [])
        if any(plugin.endpoint == info.endpoint for plugin in found):
            raise rules.endpoint_taken(info.name, info.endpoint)
        plugin = Plugin(info, service, self._sync)
        found.append(plugin)
        self._start(plugin)
        self._sync(plugin.driver)
        log.info("plugin.registered", extra={"driver": info.name, "service": service})
        return plugin

    def remove(self, plugin: Plugin) -> None:
        """The plugin's registration socket is gone."""
        self._of_driver[plugin.driver].remove(plugin)
        if not self._of_driver[plugin.driver]:
            del self._of_driver[plugin.driver]
        self._keepers.pop(plugin).cancel()
        self._sync(plugin.driver)
        log.info("plugin.deregistered", extra={"driver": plugin.driver})

    def _start(self, plugin: Plugin) -> None:
        if self._group is None:
            raise RuntimeError("plugins are added while run() runs")
        self._keepers[plugin] = self._group.create_task(self._keep(plugin))

    async def _keep(self, plugin: Plugin) -> None:
        try:
            async with TaskGroup() as group:
                group.create_task(plugin.keep_connected())
                if self.watch is not None:
                    await self.watch(plugin)
        finally:
            plugin.connection.close()

    def _sync(self, driver: str) -> None:
        """Slices of a driver without connection go, after a while; a pending end is kept."""
        if any(plugin.connection.connected for plugin in self._of_driver.get(driver, ())):
            if pending := self._pending_wipes.pop(driver, None):
                pending.cancel()
        elif driver not in self._pending_wipes and self._group is not None:
            loop = asyncio.get_running_loop()
            self._pending_wipes[driver] = loop.call_later(
                self._wiping_delay_s, self._start_wipe, driver
            )

    def _start_wipe(self, driver: str) -> None:
        self._pending_wipes.pop(driver, None)
        if self._group is not None:
            self._group.create_task(self._wipe(driver))
