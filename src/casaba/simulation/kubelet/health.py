"""What the drivers say of their devices' health, for the status of pods (KEP-4680)."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from casaba.net.dra_client import DeviceHealth, PluginCallFailed
from casaba.settings.simulation import SimulatedKubeletSettings
from casaba.simulation.kubelet import registration_rules as rules
from casaba.simulation.kubelet.claims import ClaimUse
from casaba.simulation.kubelet.plugins import Plugin

log = logging.getLogger(__name__)

_Key = tuple[str, str, str]
"""Driver, pool and device."""


class DeviceHealths:
    """Health by device, as long as it holds. `changed` is called after news."""

    def __init__(self, settings: SimulatedKubeletSettings, changed: Callable[[], None]) -> None:
        self._settings = settings
        self._changed = changed
        self._known: dict[_Key, DeviceHealth] = {}

    async def watch(self, plugin: Plugin) -> None:
        """Follow a plugin's stream, opened again when it ends; never raises PluginCallFailed.

        Returns at once where this kubelet's version asks for no health.
        """
        service = rules.health_service(self._settings.version, plugin.supported_versions)
        while service is not None:
            try:
                async for devices in plugin.connection.watch_health(service):
                    self._replace(plugin.driver, devices)
            except PluginCallFailed as error:
                log.debug("health.not_told", extra={"driver": plugin.driver, "reason": str(error)})
            self._replace(plugin.driver, ())
            await asyncio.sleep(self._settings.health_retry_s)

    def of(self, driver: str, pool: str, device: str) -> tuple[str, str]:
        """Health and message of a device; Unknown when nobody said, or too long ago."""
        known = self._known.get((driver, pool, device))
        if known is None:
            return "Unknown", ""
        holds_s = known.timeout_s if known.timeout_s > 0 else self._settings.health_timeout_s
        if time.time() > known.updated_s + holds_s:
            return "Unknown", ""
        return known.health, known.message

    def statuses(self, uses: Iterable[ClaimUse]) -> list[dict[str, Any]]:
        """`allocatedResourcesStatus` of a container; empty where no health is asked for."""
        if rules.health_service(self._settings.version, ()) is None:
            return []
        return [
            {"name": use_name(use), "resources": resources}
            for use in uses
            if (resources := list(self._resources(use)))
        ]

    def _resources(self, use: ClaimUse) -> Iterator[Mapping[str, str]]:
        for driver, device in use.devices():
            health, message = self.of(driver, device.pool, device.device)
            name = f"{driver}/{device.pool}/{device.device}"
            entry = {"resourceID": (*device.cdi_ids, name)[0], "health": health}
            yield {**entry, "message": message} if message else entry

    def _replace(self, driver: str, devices: Iterable[DeviceHealth]) -> None:
        told = {(driver, entry.pool, entry.device): entry for entry in devices}
        rest = {key: entry for key, entry in self._known.items() if key[0] != driver}
        if (fresh := rest | told) != self._known:
            self._known = fresh
            self._changed()


def use_name(use: ClaimUse) -> str:
    """How a pod's status names a use of a claim."""
    return f"claim:{use.entry}" + (f"/{use.request}" if use.request else "")
