"""Carries out a placement: devices, reservations, then the pod's node.

Order and words are the real scheduler's (plugin DynamicResources, PreBind and Unreserve): the
finalizer first, then allocation and user in one update of the status. A write whose answer never
came is looked up, so that the scheduler never believes what is not so.
"""

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from casaba.errors import CasabaError
from casaba.kube import RESOURCE_CLAIMS, Conflict, KubeClient, KubeError, ObjectKey
from casaba.simulation.scheduler.decision import Placed
from casaba.simulation.scheduler.patience import until_answered
from casaba.simulation.scheduler.state import SchedulerState
from casaba.simulation.workloads.claim_names import FINALIZER, is_reserved_for
from casaba.simulation.workloads.objects import PODS, Pod
from casaba.simulation.workloads.writing import patch_claim, user_of_claim
from casaba.wire.kubernetes import AllocationResult, ResourceClaim

log = logging.getLogger(__name__)

CONFLICT_TRIES = 5
"""As many as client-go's default retry on conflicts."""

_BINDINGS = PODS.decoded_as(dict)
_PRE_BIND = 'running PreBind plugin "DynamicResources"'
_BIND = 'binding rejected: running Bind plugin "DefaultBinder"'


class NotBound(CasabaError):
    """A placement that was given up; the message goes to the pod."""


class Binder:
    """Writes placements; several may be on their way at once."""

    def __init__(
        self, client: KubeClient, state: SchedulerState, *, timestamp: Callable[[], str]
    ) -> None:
        self._client = client
        self._state = state
        self._timestamp = timestamp

    def reserve(self, pod: Pod, placed: Placed) -> None:
        """Count the placement from now on; `bind` must follow."""
        self._state.placed[pod.metadata.uid] = (pod, placed.node)
        for claim, allocation in placed.allocations:
            status = msgspec.structs.replace(claim.status, allocation=allocation)
            self._state.in_flight[claim.metadata.uid] = msgspec.structs.replace(
                claim, status=status
            )

    async def bind(self, pod: Pod, placed: Placed) -> None:
        """Write the placement; raises NotBound, and nothing of it is counted any more then."""
        try:
            for claim, allocation in placed.allocations:
                await self._write(pod, claim, allocation)
            for claim in placed.reservations:
                await self._write(pod, claim, None)
            await self._bind(pod, placed.node)
        except NotBound:
            await self._unreserve(pod, placed)
            raise
        finally:
            self._forget(placed)

    async def _write(
        self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> None:
        try:
            written = await self._written(pod, claim, allocation)
        except KubeError as error:
            await self._look_up(claim)
            raise NotBound(f"{_PRE_BIND}: {error}") from error
        self._state.claims.assume(written)

    async def _written(
        self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> ResourceClaim:
        for attempt in range(CONFLICT_TRIES):
            try:
                return await self._write_once(pod, claim, allocation)
            except Conflict:
                if attempt == CONFLICT_TRIES - 1:
                    raise
                claim = await self._read(claim)
        raise AssertionError("unreachable")

    async def _write_once(
        self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> ResourceClaim:
        _check_still(claim, to_allocate=allocation is not None)
        if is_reserved_for(claim, pod):
            return claim
        if allocation and FINALIZER not in claim.metadata.finalizers:
            finalizers = [*claim.metadata.finalizers, FINALIZER]
            patch = {"metadata": {"finalizers": finalizers}}
            claim = await patch_claim(self._client, claim, patch)
        patch = {"status": self._status(pod, claim, allocation)}
        return await patch_claim(self._client, claim, patch, "status")

    def _status(
        self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> dict[str, Any]:
        users = [*msgspec.to_builtins(claim.status.reserved_for), user_of_claim(pod)]
        if allocation is None:
            return {"reservedFor": users}
        stamped = msgspec.structs.replace(allocation, allocation_timestamp=self._timestamp())
        return {"allocation": msgspec.to_builtins(stamped), "reservedFor": users}

    async def _bind(self, pod: Pod, node: str) -> None:
        meta = pod.metadata
        body = {
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"kind": "Node", "name": node},
        }
        try:
            await self._client.create(
                _BINDINGS, body, namespace=meta.namespace, name=meta.name, subresource="binding"
            )
        except KubeError as error:
            if not await self._is_bound(pod, node):
                raise NotBound(f"{_BIND}: {error}") from error

    async def _is_bound(self, pod: Pod, node: str) -> bool:
        async def read() -> Pod:
            meta = pod.metadata
            return await self._client.get(PODS, meta.name, namespace=meta.namespace)

        found = await until_answered(read)
        return found is not None and (found.metadata.uid, found.spec.node_name) == (
            pod.metadata.uid,
            node,
        )

    async def _look_up(self, claim: ResourceClaim) -> None:
        """After a write whose outcome is not known: nothing is decided before it is."""

        async def read() -> ResourceClaim:
            return await self._read(claim)

        found = await until_answered(read)
        if found is not None:
            self._state.claims.assume(found)

    async def _unreserve(self, pod: Pod, placed: Placed) -> None:
        """Best effort, as the real one: what stays reserved is used by the pod's next try."""
        for claim in (*(claim for claim, _ in placed.allocations), *placed.reservations):
            key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
            known = self._state.claims.get(key)
            if known is None or not is_reserved_for(known, pod):
                continue
            gone = {"$patch": "delete", "uid": pod.metadata.uid}
            try:
                freed = await self._client.patch(
                    RESOURCE_CLAIMS,
                    key.name,
                    {"status": {"reservedFor": [gone]}},
                    namespace=key.namespace,
                    subresource="status",
                    strategic=True,
                    uid=claim.metadata.uid,
                )
            except KubeError as error:
                log.warning("claim.not_unreserved", extra={"claim": key.name, "reason": str(error)})
                await self._look_up(claim)
            else:
                self._state.claims.assume(freed)

    def _forget(self, placed: Placed) -> None:
        for claim, _ in placed.allocations:
            self._state.in_flight.pop(claim.metadata.uid, None)

    async def _read(self, claim: ResourceClaim) -> ResourceClaim:
        meta = claim.metadata
        return await self._client.get(RESOURCE_CLAIMS, meta.name, namespace=meta.namespace)


def _check_still(claim: ResourceClaim, *, to_allocate: bool) -> None:
    name = f"claim {claim.metadata.namespace}/{claim.metadata.name}"
    if claim.metadata.deletion_timestamp is not None:
        raise NotBound(f"{_PRE_BIND}: {name} got deleted in the meantime")
    if to_allocate and claim.status.allocation is not None:
        raise NotBound(f"{_PRE_BIND}: {name} got allocated elsewhere in the meantime")
    if not to_allocate and claim.status.allocation is None:
        raise NotBound(f"{_PRE_BIND}: {name} got deallocated elsewhere in the meantime")
