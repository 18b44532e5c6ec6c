"""The agent from start to end; reads like section 2 of the design."""

import asyncio
import logging
from asyncio import TaskGroup
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from casaba.errors import HostError, InvalidInput
from casaba.kube import (
    NODES,
    RESOURCE_CLAIMS,
    About,
    EventRecorder,
    KubeClient,
    KubeError,
    NotFound,
    load_config,
)
from casaba.model.claim import AllocatedClaim
from casaba.model.ids import NodeName
from casaba.net.dra_sockets import DraServer, SocketPaths, socket_paths
from casaba.policy.container_mounts import PodNames
from casaba.policy.prepare import NodeFacts
from casaba.services.node_agent.cards import CardKeeper
from casaba.services.node_agent.claims import ClaimServer, Observe
from casaba.services.node_agent.conflicts import ConflictWatch
from casaba.services.node_agent.doors import keep_open, metrics_door, operator_door
from casaba.services.node_agent.host import ClaimFiles, ReadyHost, make_host_ready, mend_schedules
from casaba.services.node_agent.metrics import AgentMetrics
from casaba.services.node_agent.publisher import SlicePublisher
from casaba.services.node_agent.status import AgentStatus
from casaba.services.node_agent.usage import UsageReader
from casaba.settings.node_agent import NodeAgentSettings
from casaba.wire.kubernetes import Node, ResourceClaim

log = logging.getLogger(__name__)

COMPONENT = "casaba-node-agent"
"""Who tells the events."""


async def run_node_agent(settings: NodeAgentSettings) -> None:
    """Serve the kubelet and publish the cards until cancelled.

    Raises CasabaError when the machine or the cluster is not ready for it; a driver that is
    missing is waited for.
    """
    sockets = socket_paths(settings.paths.plugin_dir, settings.paths.registry_dir, settings.pod_uid)
    async with KubeClient(load_config(settings.kubeconfig)) as client:
        node = await _labelled_node(client, settings)
        host = await asyncio.to_thread(make_host_ready, settings)
        agent = NodeAgent.assembled(client, settings, node, host)
        await agent.cards.look()
        agent.conflicts.judge(node)
        log.info("agent.ready", extra={"node": settings.node_name, "gpus": len(agent.cards.gpus)})
        await agent.run(sockets)


async def _labelled_node(client: KubeClient, settings: NodeAgentSettings) -> dict[str, Any]:
    """The Node object; raises InvalidInput when the node is not to offer its cards."""
    name = settings.node_name
    try:
        node = await client.get(NODES.decoded_as(dict), name)
    except NotFound as error:
        raise InvalidInput(
            f"the cluster has no node {name!r}; give the kubelet's --hostname-override as "
            "--node-name"
        ) from error
    labels = node["metadata"].get("labels") or {}
    lacking = [f"{key}={value}" for key, value in settings.node_labels if labels.get(key) != value]
    if lacking:
        raise InvalidInput(
            f"node {name} has no label {', '.join(lacking)}: nothing is published; "
            f"to offer its cards: kubectl label node {name} {' '.join(lacking)}"
        )
    return node


@dataclass(kw_only=True)
class NodeAgent:
    """The agent's parts, and what each tells the others."""

    client: KubeClient
    settings: NodeAgentSettings
    host: ReadyHost
    events: EventRecorder
    status: AgentStatus
    claims: ClaimServer
    publisher: SlicePublisher
    cards: CardKeeper
    conflicts: ConflictWatch
    reader: UsageReader
    metrics: AgentMetrics

    @classmethod
    def assembled(
        cls, client: KubeClient, settings: NodeAgentSettings, node: dict[str, Any], host: ReadyHost
    ) -> "NodeAgent":
        """All parts, none of them running; there are no cards before they were looked for."""
        events = EventRecorder(client, component=COMPONENT, host=settings.node_name)
        status = AgentStatus(events, _about(node))
        cards = CardKeeper(settings, status, lambda: agent.cards_changed())
        reader = UsageReader(
            settings,
            lambda: agent.claims.promised,
            lambda: agent.cards.gpus,
            partial(_pods_of_claim, client, settings.claim_answer_s),
        )
        metrics = AgentMetrics(
            reader,
            status,
            node=settings.node_name,
            device_count=lambda: agent.publisher.device_count,
            legacy=settings.legacy_metrics,
        )
        agent = cls(
            client=client,
            settings=settings,
            host=host,
            events=events,
            status=status,
            claims=_claim_server(client, settings, host, metrics.observe_call),
            publisher=SlicePublisher(
                client,
                msgspec.convert(node, Node),
                (),
                status=status,
                crippled_retry_s=settings.crippled_retry_s,
                count=metrics.count_publish,
            ),
            cards=cards,
            conflicts=ConflictWatch(settings, status, lambda: agent.offer_changed()),
            reader=reader,
            metrics=metrics,
        )
        return agent

    def cards_changed(self) -> None:
        """There are other cards, or none any more."""
        if self.cards.missing is None:
            self.claims.use(_facts(self.settings, self.host, self.cards))
        else:
            self.claims.wait_for_cards(f"the driver does not work yet: {self.cards.missing}")
        self.offer_changed()

    def offer_changed(self) -> None:
        """What may be published is another; claims that are prepared are served all the same."""
        self.publisher.offer(() if self.conflicts.found else self.cards.gpus)

    async def run(self, sockets: SocketPaths) -> None:
        """Serve until cancelled; raises HostError when the kubelet can't be served."""
        metrics = metrics_door(self.settings, self.metrics, self.status)
        operator = operator_door(self.settings, self.host.guard_version, self.reader, self.status)
        registered = self.status.note_registration
        try:
            async with DraServer(self.claims, sockets, registered), TaskGroup() as group:
                group.create_task(self.publisher.run())
                group.create_task(self.cards.run())
                group.create_task(self.conflicts.run(self.client))
                group.create_task(self.events.run())
                group.create_task(self._keep_schedules_whole())
                group.create_task(self.reader.run())
                group.create_task(keep_open(metrics, "metrics", self.status))
                group.create_task(keep_open(operator, "operator's socket", self.status))
        except OSError as error:
            raise HostError(f"can't serve the kubelet at {sockets.dra}: {error}") from error

    async def _keep_schedules_whole(self) -> None:
        """Never returns. Not in a thread: it reads some KiB of a tmpfs."""
        while True:
            await asyncio.sleep(self.settings.schedule_check_s)
            try:
                mend_schedules(self.settings.paths, self.cards.gpus)
            except HostError as error:
                log.error("schedule.not_mended", extra={"reason": str(error)})


def _about(node: dict[str, Any]) -> About:
    metadata = node["metadata"]
    return About(api_version="v1", kind="Node", name=metadata["name"], uid=metadata["uid"])


def _claim_server(
    client: KubeClient, settings: NodeAgentSettings, host: ReadyHost, observe: Observe
) -> ClaimServer:
    async def read_claim(namespace: str, name: str) -> ResourceClaim:
        return await client.get(RESOURCE_CLAIMS, name, namespace=namespace)

    return ClaimServer(
        read_claim=read_claim,
        files=ClaimFiles(settings.paths),
        facts=_facts(settings, host, None),
        boot_id=host.boot_id,
        entries=host.entries,
        room_wait_s=settings.room_wait_s,
        observe=observe,
    )


async def _pods_of_claim(client: KubeClient, timeout_s: float, claim: AllocatedClaim) -> PodNames:
    """The pods that a claim is reserved for; none where the API server does not say so."""
    try:
        async with asyncio.timeout(timeout_s):
            found = await client.get(RESOURCE_CLAIMS, claim.name, namespace=claim.namespace)
    except (KubeError, TimeoutError) as error:
        log.warning("claim.pods_not_told", extra={"claim": claim.uid, "reason": repr(error)})
        return {}
    users = found.status.reserved_for if found.metadata.uid == claim.uid else ()
    return {user.uid: user.name for user in users if user.resource == "pods"}


def _facts(settings: NodeAgentSettings, host: ReadyHost, cards: CardKeeper | None) -> NodeFacts:
    gpus = cards.gpus if cards else ()
    return NodeFacts(
        node=NodeName(settings.node_name),
        gpus={gpu.device_name: gpu for gpu in gpus},
        guard_version=host.guard_version,
        claims_dir=settings.paths.claims_dir,
        budget_settings=settings.budgets,
    )
