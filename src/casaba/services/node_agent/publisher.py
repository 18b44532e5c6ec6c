"""Keeps this node's ResourceSlice on the API server, for ever.

The kubelet deletes it at its own start and 30 s after our connection drops (KEP-4381); people
and other programs may too. After every change that the watch shows, what is there is listed
anew and compared with what is wanted. The slice belongs to the Node object: while there is none
nothing is published, for the garbage collector would remove it at once, again and again.
"""

import asyncio
import dataclasses
import logging
from typing import Any

from casaba.aiokit import Backoff
from casaba.kube import NODES, RESOURCE_SLICES, Informer, KubeClient, KubeError
from casaba.model.gpu import Gpu
from casaba.model.ids import NodeName
from casaba.policy.publish import PublishedSlice, PublishPlan, dropped_fields, plan_publish
from casaba.policy.slices import Spec, slice_spec
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.kubernetes import Node

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.2
LAST_RETRY_S = 30.0

_SLICES = RESOURCE_SLICES.decoded_as(dict)


class SlicePublisher:
    """Publishes the cards of one node."""

    def __init__(self, client: KubeClient, node: Node, gpus: tuple[Gpu, ...]) -> None:
        self._client = client
        self._node = node
        self._gpus = gpus
        self._selector = f"spec.nodeName={node.metadata.name},spec.driver={DRIVER_NAME}"
        self._backoff = Backoff(first_s=FIRST_RETRY_S, limit_s=LAST_RETRY_S)
        self._crippled: Spec | None = None
        """What the server kept of our spec, when it dropped fields that it does not know."""

    async def run(self) -> None:
        """Never returns. If cancelled: the slice stays, the kubelet removes it in time."""
        async with Informer(self._client, _SLICES, field_selector=self._selector) as slices:
            async for _ in slices:
                await self._sync_in_the_end()

    async def _sync_in_the_end(self) -> None:
        while True:
            try:
                await self._sync()
            except KubeError as error:
                log.warning("slices.not_published", extra={"reason": str(error)})
                await asyncio.sleep(self._backoff.next_delay_s())
            else:
                self._backoff.reset()
                return

    async def _sync(self) -> None:
        listed = await self._client.list(_SLICES, field_selector=self._selector)
        published = [self._published(object_) for object_ in listed.items]
        await self._carry_out(plan_publish(self._desired, published))

    def _desired(self, generation: int) -> Spec:
        return slice_spec(NodeName(self._node.metadata.name), self._gpus, generation)

    def _published(self, object_: dict[str, Any]) -> PublishedSlice:
        metadata = object_["metadata"]
        found = PublishedSlice(
            name=metadata["name"],
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
            spec=object_["spec"],
        )
        if found.spec == self._crippled:
            return dataclasses.replace(found, spec=self._desired(found.generation))
        return found

    async def _carry_out(self, plan: PublishPlan) -> None:
        for slice_ in plan.delete:
            await self._client.delete(
                _SLICES,
                slice_.name,
                uid=slice_.uid,
                resource_version=slice_.resource_version,
            )
            log.info("slice.deleted", extra={"slice": slice_.name})
        for slice_, spec in plan.replace:
            stored = await self._client.patch(
                _SLICES,
                slice_.name,
                [{"op": "replace", "path": "/spec", "value": spec}],
                uid=slice_.uid,
                resource_version=slice_.resource_version,
            )
            self._note_stored(spec, stored)
        if plan.create:
            self._node = await self._client.get(NODES, self._node.metadata.name)
        for spec in plan.create:
            stored = await self._client.create(_SLICES, self._new_slice(spec))
            self._note_stored(spec, stored)

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

    def _note_stored(self, sent: Spec, stored: dict[str, Any]) -> None:
        log.info(
            "slice.published",
            extra={"slice": stored["metadata"]["name"], "devices": len(sent["devices"])},
        )
        if dropped := dropped_fields(sent, stored["spec"]):
            self._crippled = stored["spec"]
            log.error(
                "slice.fields_dropped",
                extra={
                    "fields": dropped,
                    "advice": "on Kubernetes 1.34 and 1.35 turn on the feature gate "
                    "DRAConsumableCapacity on API server, scheduler, controller manager, kubelet",
                },
            )
