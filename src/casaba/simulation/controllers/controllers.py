"""All controllers of a cluster, on shared watches."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, cast

from casaba import kube
from casaba.kube import EventRecorder, KubeClient, Resource
from casaba.kube.resources import Object
from casaba.simulation.controllers.claims import ClaimController
from casaba.simulation.controllers.eviction import TaintEviction
from casaba.simulation.controllers.namespaces import NamespaceController
from casaba.simulation.controllers.nodes import NodeLifecycle
from casaba.simulation.controllers.owner_collection import OwnerCollector
from casaba.simulation.controllers.pod_collection import PodCollector
from casaba.simulation.controllers.service_accounts import DefaultServiceAccounts
from casaba.simulation.workloads.following import Source
from casaba.simulation.workloads.objects import NODES, PODS, Node, Pod
from casaba.wire.kubernetes import Lease, ResourceClaim

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
        sources = _Sources.of(self._client)
        owners = OwnerCollector(self._client, OWNED_KINDS)
        controllers: tuple[_Runs, ...] = (
            *self._of_pods(events, sources),
            *self._of_nodes(events, sources),
            *self._of_namespaces(sources),
            owners,
        )
        shared = cast("tuple[_Runs, ...]", sources)  # mypy takes the mixture for objects
        return [each.run for each in (*shared, *owners.sources, *controllers)]

    def _of_pods(self, events: EventRecorder, sources: "_Sources") -> tuple[_Runs, ...]:
        client, pods = self._client, sources.pods
        quarantine_s = self._settings.orphan_quarantine_s
        return (
            ClaimController(
                client, events, pods=pods, claims=sources.claims, templates=sources.templates
            ),
            PodCollector(client, pods=pods, nodes=sources.nodes, quarantine_s=quarantine_s),
        )

    def _of_nodes(self, events: EventRecorder, sources: "_Sources") -> tuple[_Runs, ...]:
        client, pods, nodes = self._client, sources.pods, sources.nodes
        lifecycle = NodeLifecycle(
            client,
            events,
            nodes=nodes,
            leases=sources.leases,
            pods=pods,
            grace_s=self._settings.node_grace_s,
            now_s=self._settings.now_s,
        )
        eviction = TaintEviction(client, events, pods=pods, nodes=nodes, now=self._settings.now)
        return lifecycle, eviction

    def _of_namespaces(self, sources: "_Sources") -> tuple[_Runs, ...]:
        client, namespaces = self._client, sources.namespaces
        return (
            NamespaceController(client, namespaces=namespaces, kinds=(*OWNED_KINDS, kube.EVENTS)),
            DefaultServiceAccounts(client, namespaces=namespaces, accounts=sources.accounts),
        )


class _Sources(NamedTuple):
    """The watches that controllers share."""

    pods: Source[Pod]
    nodes: Source[Node]
    claims: Source[ResourceClaim]
    templates: Source[Object]
    leases: Source[Lease]
    namespaces: Source[Object]
    accounts: Source[Object]

    @classmethod
    def of(cls, client: KubeClient) -> "_Sources":
        return cls(
            pods=Source(client, PODS),
            nodes=Source(client, NODES),
            claims=Source(client, kube.RESOURCE_CLAIMS),
            templates=Source(client, kube.RESOURCE_CLAIM_TEMPLATES),
            leases=Source(client, kube.LEASES),
            namespaces=Source(client, kube.NAMESPACES),
            accounts=Source(client, kube.SERVICE_ACCOUNTS),
        )
