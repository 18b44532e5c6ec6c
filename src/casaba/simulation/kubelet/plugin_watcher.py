"""Finds registration sockets and registers, or refuses, the plugins behind them.

The folder is looked at several times a second instead of watched: a kubelet's inotify does not
notice more. Source: KEP-4381, and the kubelet's plugin watcher for names that it leaves out.
"""

import asyncio
import logging
import os
import stat
from asyncio import Task, TaskGroup
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from casaba.errors import CasabaError
from casaba.net.dra_client import PluginCallFailed, PluginInfo, notify_registration, plugin_info
from casaba.simulation.kubelet import registration_rules as rules
from casaba.simulation.kubelet.plugins import Plugin, Plugins

log = logging.getLogger(__name__)

GET_INFO_TIMEOUT_S = 1.0
NOTIFY_TIMEOUT_S = 5.0
LAST_RETRY_S = 120.0

Identity = tuple[int, int]
"""Inode and time of birth: a socket made anew under the same name is another one."""


@dataclass
class _Socket:
    """A registration socket that is there."""

    identity: Identity
    task: Task[None]
    plugin: Plugin | None = None


class PluginWatcher:
    """Keeps `Plugins` in step with the sockets in the registration folder."""

    def __init__(self, folder: Path, plugins: Plugins, *, poll_s: float, retry_s: float) -> None:
        self._folder = folder
        self._plugins = plugins
        self._poll_s = poll_s
        self._retry_s = retry_s
        self._sockets: dict[Path, _Socket] = {}

    async def run(self) -> None:
        """Never returns."""
        async with TaskGroup() as group:
            while True:
                self._look(group)
                await asyncio.sleep(self._poll_s)

    def _look(self, group: TaskGroup) -> None:
        found = dict(_sockets(self._folder))
        for path, known in list(self._sockets.items()):
            if found.get(path) != known.identity:
                self._forget(path)
        for path, identity in found.items():
            if path not in self._sockets:
                task = group.create_task(self._register_in_the_end(path))
                self._sockets[path] = _Socket(identity, task)

    def _forget(self, path: Path) -> None:
        socket = self._sockets.pop(path)
        socket.task.cancel()
        if socket.plugin is not None:
            self._plugins.remove(socket.plugin)

    async def _register_in_the_end(self, path: Path) -> None:
        delay_s = self._retry_s
        while True:
            try:
                await self._register(path)
            except CasabaError as error:
                log.warning(
                    "plugin.not_registered", extra={"socket": str(path), "reason": str(error)}
                )
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, LAST_RETRY_S)
            else:
                return

    async def _register(self, path: Path) -> None:
        """Raises RegistrationRefused once the plugin has been told, and PluginCallFailed."""
        info = await plugin_info(path, GET_INFO_TIMEOUT_S)
        info = replace(info, endpoint=info.endpoint or str(path))
        try:
            self._add(path, info)
        except rules.RegistrationRefused as error:
            await notify_registration(path, str(error), NOTIFY_TIMEOUT_S)
            raise
        try:
            await notify_registration(path, None, NOTIFY_TIMEOUT_S)
        except PluginCallFailed as error:
            # The plugin is in use all the same, as in the kubelet.
            log.warning("plugin.not_told", extra={"socket": str(path), "reason": str(error)})

    def _add(self, path: Path, info: PluginInfo) -> None:
        rules.check_type(info, str(path))
        self._sockets[path].plugin = self._plugins.add(info)


def _sockets(folder: Path) -> Iterator[tuple[Path, Identity]]:
    """Unix sockets in a folder and below; names that begin with a dot are left out."""
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = Path(root) / name
            try:
                status = path.lstat()
            except OSError:
                continue
            if stat.S_ISSOCK(status.st_mode) and not name.startswith("."):
                yield path, (status.st_ino, status.st_mtime_ns)
