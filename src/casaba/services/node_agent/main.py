"""The agent from start to end; reads like section 2 of the design."""

import asyncio
import logging
from asyncio import TaskGroup

from casaba.errors import HostError, InvalidInput
from casaba.kube import NODES, RESOURCE_CLAIMS, KubeClient, NotFound, load_config
from casaba.model.ids import NodeName
from casaba.net.dra_sockets import DraServer, socket_paths
from casaba.policy.prepare import NodeFacts
from casaba.services.node_agent.claims import ClaimServer
from casaba.services.node_agent.host import ClaimFiles, ReadyHost, make_host_ready, mend_schedules
from casaba.services.node_agent.publisher import SlicePublisher
from casaba.settings.node_agent import GPU_NODE_LABEL, NodeAgentSettings
from casaba.wire.kubernetes import Node, ResourceClaim

log = logging.getLogger(__name__)


async def run_node_agent(settings: NodeAgentSettings) -> None:
    """Serve the kubelet and publish the cards until cancelled.

    Raises CasabaError when the machine or the cluster is not ready for it.
    """
    sockets = socket_paths(settings.paths.plugin_dir, settings.paths.registry_dir, settings.pod_uid)
    async with KubeClient(load_config(settings.kubeconfig)) as client:
        node = await _labelled_node(client, settings.node_name)
        host = await asyncio.to_thread(make_host_ready, settings)
        log.info("agent.ready", extra={"node": settings.node_name, "gpus": len(host.gpus)})
        driver = _claim_server(client, settings, host)
        try:
            async with DraServer(driver, sockets, _note_registration), TaskGroup() as group:
                group.create_task(SlicePublisher(client, node, host.gpus).run())
                group.create_task(_keep_schedules_whole(settings, host))
        except OSError as error:
            raise HostError(f"can't serve the kubelet at {sockets.dra}: {error}") from error


async def _labelled_node(client: KubeClient, name: str) -> Node:
    """The Node object; raises InvalidInput when the node is not to offer its cards."""
    key, value = GPU_NODE_LABEL
    try:
        node = await client.get(NODES, name)
    except NotFound as error:
        raise InvalidInput(
            f"the cluster has no node {name!r}; give the kubelet's --hostname-override as "
            "--node-name"
        ) from error
    if node.metadata.labels.get(key) != value:
        raise InvalidInput(
            f"node {name} has no label {key}={value}: nothing is published; "
            f"to offer its cards: kubectl label node {name} {key}={value}"
        )
    return node


def _claim_server(client: KubeClient, settings: NodeAgentSettings, host: ReadyHost) -> ClaimServer:
    async def read_claim(namespace: str, name: str) -> ResourceClaim:
        return await client.get(RESOURCE_CLAIMS, name, namespace=namespace)

    facts = NodeFacts(
        node=NodeName(settings.node_name),
        gpus={gpu.device_name: gpu for gpu in host.gpus},
        guard_version=host.guard_version,
        claims_dir=settings.paths.claims_dir,
        budget_settings=settings.budgets,
    )
    return ClaimServer(
        read_claim=read_claim,
        files=ClaimFiles(settings.paths),
        facts=facts,
        boot_id=host.boot_id,
        entries=host.entries,
        room_wait_s=settings.room_wait_s,
    )


async def _keep_schedules_whole(settings: NodeAgentSettings, host: ReadyHost) -> None:
    """Never returns. Not in a thread: it reads some KiB of a tmpfs."""
    while True:
        await asyncio.sleep(settings.schedule_check_s)
        try:
            mend_schedules(settings.paths, host.gpus)
        except HostError as error:
            log.error("schedule.not_mended", extra={"reason": str(error)})


def _note_registration(error: str | None) -> None:
    if error is None:
        log.info("kubelet.registered")
    else:
        log.error("kubelet.registration_failed", extra={"reason": error})
