"""All controllers of a cluster, on shared watches."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from casaba import kube
from casaba.kube import EventRecorder, KubeClient, Resource
from casaba.simulation.controllers.claims import ClaimController
from casaba.simulation.controllers.eviction import TaintEviction
from casaba.simulation.controllers.namespaces import NamespaceController
from casaba.simulation.controllers.nodes import NodeLifecycle
from casaba.simulation.controllers.owner_collection import OwnerCollector
from casaba.simulation.controllers.pod_collection import PodCollector
from casaba.simulation.controllers.service_accounts import DefaultServiceAccounts
from casaba.simulation.workloads.following import Source
from casaba.simulation.workloads.objects import NODES, PODS

OWNED_KINDS: tuple[Resource[Any], ...] = (
    kube.NODES,
    kube.NAMESPACES,
    kube.PODS,
    kube.CONFIG_MAPS,
    kube.SECRETS,
    kube.SERVICE_ACCOUNTS,
    kube.LEASES,
    kube.DEVICE_CLASSES,
    kube.RESOURCE_SLICES,
    kube.RESOURCE_CLAIMS,
    kube.RESOURCE_CLAIM_TEMPLATES,
    kube.ROLES,
    kube.ROLE_BINDINGS,
    kube.CLUSTER_ROLES,
    kube.CLUSTER_ROLE_BINDINGS,
    kube.MUTATING_WEBHOOKS,
    kube.VALIDATING_WEBHOOKS,
)
"""All kinds of the simulated server that last; events belong to nobody."""


class _Runs(Protocol):
    async def run(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """Times of the controllers; the defaults are kube-controller-manager's."""

    node_grace_s: float = 50.0
    """A node that gave no sign of life for so long is unreachable, in seconds."""
    orphan_quarantine_s: float = 40.0
    """A pod stays for so long after its node was deleted, in seconds."""
    now_s: Callable[[], float] = field(default=time.monotonic)
    """The clock for signs of life."""
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    """The clock for tolerations, which are counted from times in objects."""


class SimulatedControllers:
    """The part of kube-controller-manager that pods with claims need, for any API server."""

    def __init__(self, client: KubeClient, settings: ControllerSettings | None = None) -> None:
        self._client = client
        self._settings = settings or ControllerSettings()

    async def run(self) -> None:
        """Never returns. If cancelled: what was begun is taken up by the next run."""
        events = EventRecorder(self._client, component="controllermanager")
        async with asyncio.TaskGroup() as group:
            group.create_task(events.run())
            for run in self._all(events):
                group.create_task(run())

    def _all(self, events: EventRecorder) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        """Listeners first: a source that runs tells its news only once."""
        client, settings = self._client, self._settings
        pods, nodes = Source(client, PODS), Source(client, NODES)
        claims = Source(client, kube.RESOURCE_CLAIMS)
        templates = Source(client, kube.RESOURCE_CLAIM_TEMPLATES)
        leases = Source(client, kube.LEASES)
        namespaces = Source(client, kube.NAMESPACES)
        accounts = Source(client, kube.SERVICE_ACCOUNTS)
        owners = OwnerCollector(client, OWNED_KINDS)
        controllers: tuple[_Runs, ...] = (
            ClaimController(client, events, pods=pods, claims=claims, templates=templates),
            PodCollector(client, pods=pods, nodes=nodes, quarantine_s=settings.orphan_quarantine_s),
            NodeLifecycle(
                client,
                events,
                nodes=nodes,
                leases=leases,
                pods=pods,
                grace_s=settings.node_grace_s,
                now_s=settings.now_s,
            ),
            TaintEviction(client, events, pods=pods, nodes=nodes, now=settings.now),
            NamespaceController(client, namespaces=namespaces, kinds=(*OWNED_KINDS, kube.EVENTS)),
            DefaultServiceAccounts(client, namespaces=namespaces, accounts=accounts),
            owners,
        )
        sources: tuple[_Runs, ...] = (
            pods,
            nodes,
            claims,
            templates,
            leases,
            namespaces,
            accounts,
            *owners.sources,
        )
        return [each.run for each in (*sources, *controllers)]
