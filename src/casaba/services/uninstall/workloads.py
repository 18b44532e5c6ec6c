"""The two DaemonSets of an uninstall and their nodes: seen, deleted, created."""

from collections.abc import Mapping
from typing import Any

from casaba.kube import DAEMON_SETS, NODES, PODS, AlreadyExists, Conflict, KubeClient, NotFound
from casaba.policy.removal import (
    ClusterSeen,
    CreateCleaner,
    DaemonPod,
    DaemonSet,
    Delete,
    NodeState,
)

_SETS = DAEMON_SETS.decoded_as(DaemonSet)
_PODS = PODS.decoded_as(DaemonPod)
_NODES = NODES.decoded_as(NodeState)


class Workloads:
    """The agent's DaemonSet and the cleaner, in one namespace. Raises KubeError."""

    def __init__(
        self, client: KubeClient, namespace: str, *, agent: str, cleaner: Mapping[str, Any]
    ) -> None:
        """`cleaner` is a whole DaemonSet, with its name."""
        self._client = client
        self._namespace = namespace
        self._cleaner = cleaner
        self._names = {"agent": agent, "cleaner": str(cleaner["metadata"]["name"])}

    async def look(self) -> ClusterSeen:
        """What there is. Sets before pods: a pod that is seen alone has lost its set."""
        agent, cleaner = await self._set("agent"), await self._set("cleaner")
        pods = (await self._client.list(_PODS, namespace=self._namespace)).items
        nodes = (await self._client.list(_NODES)).items
        return ClusterSeen(
            agent=agent,
            agent_pods=tuple(pod for pod in pods if pod.belongs_to(self._names["agent"])),
            cleaner=cleaner,
            cleaner_pods=tuple(pod for pod in pods if pod.belongs_to(self._names["cleaner"])),
            silent_nodes=frozenset(node.metadata.name for node in nodes if node.is_silent),
        )

    async def _set(self, part: str) -> DaemonSet | None:
        try:
            return await self._client.get(_SETS, self._names[part], namespace=self._namespace)
        except NotFound:
            return None

    async def carry_out(self, step: Delete | CreateCleaner) -> None:
        """Do it, unless it was done meanwhile."""
        if isinstance(step, CreateCleaner):
            try:
                await self._client.create(DAEMON_SETS, self._cleaner, namespace=self._namespace)
            except AlreadyExists:
                return
        else:
            await self._delete(step)

    async def _delete(self, step: Delete) -> None:
        try:
            await self._client.delete(
                DAEMON_SETS,
                self._names[step.part],
                namespace=self._namespace,
                uid=step.uid,
                propagation="Background",
            )
        except (NotFound, Conflict):
            return
