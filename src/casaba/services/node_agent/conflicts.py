"""Follows the node's own object for somebody else who gives out its cards."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from casaba.kube import NODES, Deleted, Informer, KubeClient, Synced
from casaba.policy.conflicts import ConflictRules, Heartbeat, find_conflicts
from casaba.services.node_agent.status import AgentStatus
from casaba.settings.node_agent import NodeAgentSettings

log = logging.getLogger(__name__)

_NODES = NODES.decoded_as(dict)
_ABOUT = "conflict"


class ConflictWatch:
    """Judges the Node object; `changed` hears of it when there begins or ends to be a conflict."""

    def __init__(
        self, settings: NodeAgentSettings, status: AgentStatus, changed: Callable[[], None]
    ) -> None:
        self._name = settings.node_name
        self._rules = ConflictRules(
            resources=settings.card_resources, silence_s=settings.hami_silence_s
        )
        self._status = status
        self._changed = changed
        self._node: Mapping[str, Any] = {}
        self._heartbeat: Heartbeat | None = None
        self._look_again_s: float | None = None
        self.found = False
        """Whether somebody else gives out the cards."""

    async def run(self, client: KubeClient) -> None:
        """Never returns; needs the rights to list and watch nodes."""
        selector = f"metadata.name={self._name}"
        async with Informer(client, _NODES, field_selector=selector) as nodes:
            events = aiter(nodes)
            while True:
                try:
                    async with asyncio.timeout(self._look_again_s):
                        event = await anext(events)
                except TimeoutError:
                    self.judge(self._node)
                    continue
                if not isinstance(event, Deleted | Synced):
                    self.judge(event.object)

    def judge(self, node: Mapping[str, Any]) -> None:
        """Look at the node as it is now."""
        verdict = find_conflicts(
            node,
            self._heartbeat,
            self._rules,
            now_s=asyncio.get_running_loop().time(),
            utc=datetime.now(UTC),
        )
        self._node, self._heartbeat = node, verdict.heartbeat
        self._look_again_s = verdict.look_again_s
        for problem in verdict.conflicts[:1]:
            self._status.tell(_ABOUT, problem)
        if not verdict.conflicts:
            self._status.over(_ABOUT, "CardsPublished", "nobody else offers the cards any more")
        if self.found != bool(verdict.conflicts):
            self.found = bool(verdict.conflicts)
            self._changed()
