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
from casaba.simulation.workloads.claim_names import FINALIZER, claim_names, is_reserved_for
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
    """Writes placements, and takes back what stands in their way; several may be on their way."""

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
            await self._unreserve(pod)
            raise
        finally:
            self._forget(placed)

    async def deallocate(self, claim: ResourceClaim) -> None:
        """Take the devices from a claim that nobody uses; best effort."""
        status = {"allocation": None, "reservedFor": None, "devices": None}
        try:
            freed = await patch_claim(self._client, claim, {"status": status}, "status")
        except KubeError as error:
            name = claim.metadata.name
            log.warning("claim.not_deallocated", extra={"claim": name, "reason": str(error)})
            await self._look_up(claim)
        else:
            self._state.claims.assume(freed)

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
        now = claim
        for attempt in range(CONFLICT_TRIES):
            _check_as_decided(now, claim)
            try:
                return await self._write_once(pod, now, allocation)
            except Conflict:
                if attempt == CONFLICT_TRIES - 1:
                    raise
                now = await self._read(claim)
        raise AssertionError("unreachable")

    async def _write_once(
        self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> ResourceClaim:
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
        await until_answered(lambda: self._read(claim))

    async def _unreserve(self, pod: Pod) -> None:
        """All claims of the pod, also what an earlier try has left; best effort, as the real one.

        What stays reserved is used by the pod's next try.
        """
        for name in sorted(claim_names(pod)):
            known = self._state.claims.get(ObjectKey(pod.metadata.namespace, name))
            if known is not None and is_reserved_for(known, pod):
                await self._unreserve_one(pod, known)

    async def _unreserve_one(self, pod: Pod, claim: ResourceClaim) -> None:
        meta = claim.metadata
        gone = {"$patch": "delete", "uid": pod.metadata.uid}
        try:
            freed = await self._client.patch(
                RESOURCE_CLAIMS,
                meta.name,
                {"status": {"reservedFor": [gone]}},
                namespace=meta.namespace,
                subresource="status",
                strategic=True,
                uid=meta.uid,
            )
        except KubeError as error:
            log.warning("claim.not_unreserved", extra={"claim": meta.name, "reason": str(error)})
            await self._look_up(claim)
        else:
            self._state.claims.assume(freed)

    def _forget(self, placed: Placed) -> None:
        for claim, _ in placed.allocations:
            self._state.in_flight.pop(claim.metadata.uid, None)

    async def _read(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim of that name as it is now, which counts from now on."""
        meta = claim.metadata
        found = await self._client.get(RESOURCE_CLAIMS, meta.name, namespace=meta.namespace)
        self._state.claims.assume(found)
        return found


def _check_as_decided(now: ResourceClaim, decided: ResourceClaim) -> None:
    """The real one checks less: it reserves whatever devices the claim has by now, on any node.

    Raises:
        NotBound: the claim has other devices by now, or leaves, or is another one.
    """
    name = f"claim {decided.metadata.namespace}/{decided.metadata.name}"
    if now.metadata.deletion_timestamp is not None or now.metadata.uid != decided.metadata.uid:
        raise NotBound(f"{_PRE_BIND}: {name} got deleted in the meantime")
    if now.status.allocation != decided.status.allocation:
        what = "allocated" if now.status.allocation else "deallocated"
        raise NotBound(f"{_PRE_BIND}: {name} got {what} elsewhere in the meantime")
