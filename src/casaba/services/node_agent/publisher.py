"""Keeps this node's ResourceSlice on the API server, for ever.

The kubelet deletes it at its own start and 30 s after our connection drops (KEP-4381); people
and other programs may too. After every change that the watch shows, what is there is listed
anew and compared with what is wanted. The slice belongs to the Node object: while there is none
nothing is published, for the garbage collector would remove it at once, again and again.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from casaba.aiokit import Backoff
from casaba.kube import NODES, RESOURCE_SLICES, Informer, KubeClient, KubeError, Synced
from casaba.model.gpu import Gpu
from casaba.model.ids import NodeName
from casaba.model.problem import Problem
from casaba.policy.publish import (
    PublishedSlice,
    PublishPlan,
    dropped_fields,
    plan_publish,
    plan_withdrawal,
)
from casaba.policy.slices import Spec, slice_spec
from casaba.services.node_agent.status import AgentStatus
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.kubernetes import Node

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 30.0

ADVICE = (
    "on Kubernetes 1.34 and 1.35 turn on the feature gate DRAConsumableCapacity on API server, "
    "scheduler, controller manager and kubelet"
)

_SLICES = RESOURCE_SLICES.decoded_as(dict)
_ABOUT = "slice fields"
_FIELDS_TOLD = 3


def _uncounted(done: str) -> None:
    pass


class SlicePublisher:
    """Publishes the cards of one node."""

    def __init__(
        self,
        client: KubeClient,
        node: Node,
        gpus: tuple[Gpu, ...],
        *,
        status: AgentStatus,
        crippled_retry_s: float,
        count: Callable[[str], None] = _uncounted,
    ) -> None:
        """`count` hears of what was done to slices: created, replaced, deleted, failed."""
        self._client = client
        self._node = node
        self._gpus = gpus
        self._status = status
        self._crippled_retry_s = crippled_retry_s
        self._count = count
        self._selector = f"spec.nodeName={node.metadata.name},spec.driver={DRIVER_NAME}"
        self._backoff = Backoff(first_s=FIRST_RETRY_S, limit_s=LAST_RETRY_S)
        self._one_at_a_time = asyncio.Lock()
        self._changed = asyncio.Event()
        self._server_keeps_fields = False
        self._withdrawn_until_s: float | None = None
        """When to try again after the server dropped fields that it does not know."""

    @property
    def device_count(self) -> int:
        """How many devices the node wants to offer now."""
        return 0 if self._withdrawn_until_s is not None else len(self._gpus)

    def offer(self, gpus: tuple[Gpu, ...]) -> None:
        """Publish these cards from now on; none is an empty slice."""
        self._gpus = gpus
        self._changed.set()

    async def run(self) -> None:
        """Never returns. If cancelled: the slice stays, the kubelet removes it in time."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_server())
            group.create_task(self._follow_offers())

    async def _follow_server(self) -> None:
        async with Informer(self._client, _SLICES, field_selector=self._selector) as slices:
            async for event in slices:
                if isinstance(event, Synced):
                    log.info("slices.followed", extra={"slices": len(slices.objects)})
                await self._sync_in_the_end()

    async def _follow_offers(self) -> None:
        while True:
            try:
                async with asyncio.timeout_at(self._withdrawn_until_s):
                    await self._changed.wait()
            except TimeoutError:
                self._withdrawn_until_s = None
            self._changed.clear()
            await self._sync_in_the_end()

    async def _sync_in_the_end(self) -> None:
        async with self._one_at_a_time:
            while True:
                try:
                    await self._sync()
                except KubeError as error:
                    self._count("failed")
                    log.warning("slices.not_published", extra={"reason": str(error)})
                    await asyncio.sleep(self._backoff.next_delay_s())
                else:
                    self._backoff.reset()
                    return

    async def _sync(self) -> None:
        listed = await self._client.list(_SLICES, field_selector=self._selector)
        published = [_published(object_) for object_ in listed.items]
        if self._withdrawn_until_s is not None:
            await self._carry_out(plan_withdrawal(published))
            return
        plan = plan_publish(self._desired, published)
        if plan.is_empty or await self._keeps_fields(plan):
            await self._carry_out(plan)
        else:
            await self._carry_out(plan_withdrawal(published))

    def _desired(self, generation: int) -> Spec:
        return slice_spec(NodeName(self._node.metadata.name), self._gpus, generation)

    async def _keeps_fields(self, plan: PublishPlan) -> bool:
        """Ask the server by a dry run, so that no scheduler ever sees a slice without limits."""
        specs = [*plan.create, *(spec for _, spec in plan.replace)]
        if self._server_keeps_fields or not any(spec.get("devices") for spec in specs):
            return True
        await self._renew_node()
        for spec in specs:
            stored = await self._client.create(_SLICES, self._new_slice(spec), dry_run=True)
            if not self._check_stored(spec, stored):
                return False
        self._server_keeps_fields = True
        self._status.over(_ABOUT, "SliceFieldsKept", "the API server keeps all fields again")
        return True

    async def _carry_out(self, plan: PublishPlan) -> None:
        for slice_ in plan.delete:
            await self._client.delete(
                _SLICES,
                slice_.name,
                uid=slice_.uid,
                resource_version=slice_.resource_version,
            )
            self._count("deleted")
            log.info("slice.deleted", extra={"slice": slice_.name})
        for slice_, spec in plan.replace:
            stored = await self._client.patch(
                _SLICES,
                slice_.name,
                [{"op": "replace", "path": "/spec", "value": spec}],
                uid=slice_.uid,
                resource_version=slice_.resource_version,
            )
            self._note_stored("replaced", spec, stored)
        if plan.create:
            await self._renew_node()
        for spec in plan.create:
            stored = await self._client.create(_SLICES, self._new_slice(spec))
            self._note_stored("created", spec, stored)

    async def _renew_node(self) -> None:
        """The owner's UID is another after the node was deleted and has come back."""
        self._node = await self._client.get(NODES, self._node.metadata.name)

    def _new_slice(self, spec: Spec) -> dict[str, Any]:
        node = self._node.metadata
        owner = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": node.name,
            "uid": node.uid,
            "controller": True,
        }
        metadata = {"generateName": f"{node.name}-{DRIVER_NAME}-", "ownerReferences": [owner]}
        return {"metadata": metadata, "spec": spec}

    def _note_stored(self, done: str, sent: Spec, stored: dict[str, Any]) -> None:
        self._count(done)
        log.info(
            "slice.published",
            extra={"slice": stored["metadata"]["name"], "devices": len(sent.get("devices", ()))},
        )
        self._check_stored(sent, stored)

    def _check_stored(self, sent: Spec, stored: dict[str, Any]) -> bool:
        """Whether the server keeps all that was sent; if not, the slice is to be taken back."""
        dropped = dropped_fields(sent, stored["spec"])
        if not dropped:
            return True
        log.error("slice.fields_dropped", extra={"fields": dropped, "advice": ADVICE})
        message = (
            f"the API server dropped {_few(dropped)}: without them a card would be given out "
            f"whole, so none is published; {ADVICE}. Tried again in "
            f"{self._crippled_retry_s:.0f} s, or when the agent is started"
        )
        self._status.tell(_ABOUT, Problem(reason="SliceFieldsDropped", message=message))
        self._server_keeps_fields = False
        loop = asyncio.get_running_loop()
        self._withdrawn_until_s = loop.time() + self._crippled_retry_s
        self._changed.set()
        return False


def _few(fields: tuple[str, ...]) -> str:
    """The first of many fields, which are the same for every device."""
    told = ", ".join(fields[:_FIELDS_TOLD])
    more = len(fields) - _FIELDS_TOLD
    return f"{told} and {more} more" if more > 0 else told


def _published(object_: dict[str, Any]) -> PublishedSlice:
    metadata = object_["metadata"]
    return PublishedSlice(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        spec=object_["spec"],
    )
