"""A ResourceClaim of the API server, reduced to what this driver must serve."""

from collections.abc import Iterable

from casaba.errors import InvalidInput, PrepareRefused
from casaba.model import quantity
from casaba.model.claim import AllocatedClaim, Share
from casaba.model.ids import ClaimUid, DeviceName, claim_uid, request_name
from casaba.policy.parameters import SliceParameters, parse_parameters
from casaba.policy.slices import CORES, MEMORY
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.kubernetes import (
    DeviceAllocationConfig,
    DeviceRequestAllocationResult,
    ResourceClaim,
)

FROM_CLASS = "FromClass"
"""Source of an allocation's config entry that the DeviceClass brought."""


def allocated_claim(claim: ResourceClaim, expected: ClaimUid) -> AllocatedClaim:
    """The shares that the scheduler gave to a claim from this driver's devices.

    Raises PrepareRefused when the object is another one than the kubelet means, is not allocated,
    or its result lacks what a limit needs, or its parameters are wrong.
    """
    if claim.metadata.uid != expected:
        raise PrepareRefused(
            f"the API server has a claim of this name with UID {claim.metadata.uid}: "
            "the pod's own was deleted; delete the pod"
        )
    if claim.status.allocation is None:
        raise PrepareRefused("the claim is not allocated any more; delete the pod")
    devices = claim.status.allocation.devices
    shares = tuple(
        _share(result, devices.config) for result in devices.results if result.driver == DRIVER_NAME
    )
    if not shares:
        raise PrepareRefused(f"no device of driver {DRIVER_NAME} is allocated to the claim")
    return AllocatedClaim(
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim_uid(claim.metadata.uid),
        shares=shares,
    )


def _share(
    result: DeviceRequestAllocationResult, config: Iterable[DeviceAllocationConfig]
) -> Share:
    if result.admin_access:
        raise PrepareRefused(
            f"request {result.request} asks for adminAccess, which this driver does not give: "
            "a container with it would see the whole card; leave it out"
        )
    try:
        return Share(
            request=request_name(result.request),
            pool=result.pool,
            device=DeviceName(result.device),
            share_id=result.share_id,
            memory_bytes=_consumed(result, MEMORY),
            cores_percent=_consumed(result, CORES),
            parameters=_parameters(result.request, config),
        )
    except InvalidInput as error:
        raise PrepareRefused(f"request {result.request}: {error}") from error


def _parameters(request: str, config: Iterable[DeviceAllocationConfig]) -> SliceParameters:
    """Of all entries that are for the request, the later over the earlier (KEP-4381)."""
    parameters = SliceParameters()
    names = {request, request.split("/", 1)[0]}
    for entry in config:
        if entry.opaque is None or entry.opaque.driver != DRIVER_NAME:
            continue
        if not entry.requests or names.intersection(entry.requests):
            parameters = parameters.overlaid(_entry_parameters(entry))
    return parameters


def _entry_parameters(entry: DeviceAllocationConfig) -> SliceParameters:
    owner = "class" if entry.source == FROM_CLASS else "claim"
    try:
        return parse_parameters(entry.opaque.parameters if entry.opaque else None)
    except InvalidInput as error:
        raise PrepareRefused(f"the {owner}'s config for driver {DRIVER_NAME}: {error}") from error


def _consumed(result: DeviceRequestAllocationResult, key: str) -> int:
    if key not in result.consumed_capacity:
        raise PrepareRefused(
            f"request {result.request}: the allocation of {result.device} says nothing of "
            f"{key!r} in consumedCapacity; on Kubernetes 1.34 and 1.35 turn on the feature gate "
            "DRAConsumableCapacity (API server, scheduler, controller manager, kubelet), then "
            "delete pod and claim"
        )
    amount = quantity.parse(result.consumed_capacity[key])
    if amount < 0:
        raise PrepareRefused(f"request {result.request}: negative {key}: {amount}")
    return amount
