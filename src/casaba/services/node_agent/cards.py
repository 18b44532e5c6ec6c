"""Keeps the node's cards as they are: a driver may come late, and may be replaced under us.

The GPU Operator's driver is a container whose root appears below /run/nvidia/driver minutes after
the agent, and anew with other libraries at each upgrade. A CDI spec names the libraries' files.
"""

import asyncio
import logging
from collections.abc import Callable

from casaba.aiokit.lone_call import LoneCall, NoAnswer
from casaba.errors import CasabaError
from casaba.model.gpu import Gpu
from casaba.model.problem import Problem
from casaba.node.nvidia.driver_root import DriverMark, driver_mark
from casaba.services.node_agent.host import make_cards_ready
from casaba.services.node_agent.status import AgentStatus
from casaba.settings.node_agent import NodeAgentSettings

log = logging.getLogger(__name__)

_ABOUT = "driver"
_SILENT = "it does not answer; see the kernel's log (dmesg) and nvidia-smi on the node"


class CardKeeper:
    """Looks for the driver again and again; `changed` hears of it when the cards are others."""

    def __init__(
        self, settings: NodeAgentSettings, status: AgentStatus, changed: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._status = status
        self._changed = changed
        self._mark: DriverMark | None = None
        self._driver = LoneCall("driver")
        self.gpus: tuple[Gpu, ...] = ()
        """The cards that can be given out now."""
        self.missing: str | None = "the driver has not been looked for yet"
        """Why there are none; None: the driver works."""

    async def run(self) -> None:
        """Never returns."""
        while True:
            await asyncio.sleep(self._settings.driver_check_s)
            await self.look()

    async def look(self) -> None:
        """Look once; never raises for a driver that is missing or broken, or hangs."""
        mark = await asyncio.to_thread(driver_mark, self._settings.driver_root)
        if mark is not None and mark == self._mark and self.missing is None:
            return
        try:
            gpus = await self._driver.ask(
                lambda: make_cards_ready(self._settings), self._settings.driver_answer_s
            )
        except NoAnswer:
            self._lose(_SILENT)
        except CasabaError as error:
            self._lose(str(error))
        else:
            self._take(mark, gpus)

    def _lose(self, reason: str) -> None:
        if reason == self.missing:
            return
        self.gpus, self.missing, self._mark = (), reason, None
        message = f"no cards are published until the driver works: {reason}"
        self._status.tell(_ABOUT, Problem(reason="DriverMissing", message=message))
        self._changed()

    def _take(self, mark: DriverMark | None, gpus: tuple[Gpu, ...]) -> None:
        replaced = self._mark is not None
        self.gpus, self.missing, self._mark = gpus, None, mark
        versions = ", ".join(sorted({gpu.driver_version for gpu in gpus})) or "no card"
        log.info("cards.ready", extra={"gpus": len(gpus), "driver": versions, "again": replaced})
        self._status.over(_ABOUT, "DriverReady", f"{len(gpus)} cards (driver {versions})")
        if replaced:
            self._status.note("DriverChanged", f"{len(gpus)} cards (driver {versions})")
        self._changed()
