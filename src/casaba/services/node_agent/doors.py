"""The agent's two doors for people: metrics over HTTP, and the operator's socket.

Neither is needed to serve claims: what can't be opened is told and tried again.
"""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

from casaba import __version__
from casaba.errors import HostError
from casaba.model.problem import Problem
from casaba.net.http_metrics import MetricsServer
from casaba.net.operator_socket import OperatorServer
from casaba.services.node_agent.metrics import AgentMetrics
from casaba.services.node_agent.status import AgentStatus
from casaba.services.node_agent.usage import UsageReader
from casaba.settings.node_agent import NodeAgentSettings
from casaba.wire.node_report import NodeReport, build_report

RETRY_S = 5.0


def metrics_door(
    settings: NodeAgentSettings, metrics: AgentMetrics, status: AgentStatus
) -> MetricsServer:
    """What Prometheus and the kubelet's probes ask; raises InvalidInput for the address."""
    return MetricsServer(
        settings.metrics_address,
        metrics.registry,
        is_ready=status.unreadiness,
        families=metrics.families,
    )


def operator_door(
    settings: NodeAgentSettings, guard_version: str, reader: UsageReader, status: AgentStatus
) -> OperatorServer:
    """What `casaba smi` asks."""

    async def document() -> bytes:
        report = NodeReport(
            release=__version__,
            guard=guard_version,
            registered=status.is_registered,
            problems=status.problems,
            use=await reader.read(),
        )
        return build_report(report)

    return OperatorServer(settings.operator_socket, document)


async def keep_open(
    door: AbstractAsyncContextManager[Any], about: str, status: AgentStatus
) -> None:
    """Never returns; closes the door when cancelled."""
    while True:
        try:
            async with door:
                status.over(about, "DoorOpen", f"{about}: served again")
                await asyncio.Event().wait()
        except HostError as error:
            problem = Problem(reason="DoorClosed", message=f"{about}: {error}")
            status.tell(about, problem)
            await asyncio.sleep(RETRY_S)
