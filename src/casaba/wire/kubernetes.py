"""Kubernetes objects as we read them: only the kinds and fields that casaba uses.

For reading only. Decoding drops every field that is not named here, so a decoded object must
never be sent back: writes are built as plain dicts and sent as such. Quantities, times and
resource versions stay the text that the API server sent.

A field is optional here exactly where the API's Go types leave it out or write `null`
(k8s.io/api v0.36: core/v1, resource/v1, coordination/v1).
"""

from typing import Any, Generic, TypeVar

from msgspec import Raw, Struct, field

T = TypeVar("T")


class Wire(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What all share. Values decoded from JSON can't form cycles, so the collector is spared."""


class OwnerReference(Wire, frozen=True):
    """Who owns an object; the owner's deletion collects it."""

    api_version: str
    kind: str
    name: str
    uid: str = ""
    controller: bool = False


class ObjectMeta(Wire, frozen=True):
    """Identity and version of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Identity(Wire, frozen=True):
    """The part of the metadata that a cache lives by."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Identified(Wire, frozen=True):
    """Any object, reduced to its identity."""

    metadata: Identity


class ListMeta(Wire, frozen=True):
    """Version of a list, and the token of its next page."""

    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class Bookmark(Wire, frozen=True):
    """How far a watch has come: an object without a name, of the watched kind."""

    metadata: ListMeta


class Listing(Wire, Generic[T], frozen=True):
    """A list, or one page of it."""

    metadata: ListMeta = ListMeta()
    items: tuple[T, ...] | None = None


class StatusCause(Wire, frozen=True):
    """One reason of a refusal; `field` is a path such as `metadata.uid`."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire, frozen=True):
    """The machine-readable part of a refusal."""

    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Wire, frozen=True):
    """What the API server answers when it does not answer with an object."""

    status: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


class WatchEvent(Wire, frozen=True):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: Raw


class Node(Wire, frozen=True):
    """A node: labels and UID."""

    metadata: ObjectMeta


class ResourceClaimUse(Wire, frozen=True):
    """A container's use of a claim; all requests of it when `request` is empty."""

    name: str
    request: str = ""


class ResourceRequirements(Wire, frozen=True):
    """What a container asks for, claims only."""

    claims: tuple[ResourceClaimUse, ...] = ()


class Container(Wire, frozen=True):
    """A container of a pod."""

    name: str
    resources: ResourceRequirements = ResourceRequirements()


class PodResourceClaim(Wire, frozen=True):
    """A claim of a pod, named directly or made from a template."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Wire, frozen=True):
    """Where a pod runs and which claims its containers use."""

    node_name: str = ""
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()


class ContainerStatus(Wire, frozen=True):
    """A container's id at the runtime, such as `containerd://…`."""

    name: str
    container_id: str = field(default="", name="containerID")


class PodResourceClaimStatus(Wire, frozen=True):
    """The claim made from a template; no name means that none was needed."""

    name: str
    resource_claim_name: str | None = None


class PodStatus(Wire, frozen=True):
    """How far a pod has come."""

    phase: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class Pod(Wire, frozen=True):
    """A pod and its claims."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class ObjectReference(Wire, frozen=True):
    """What an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Event(Wire, frozen=True):
    """A line in `kubectl describe`."""

    metadata: ObjectMeta
    involved_object: ObjectReference
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0


class LeaseSpec(Wire, frozen=True):
    """Who holds a lease, since when and for how many seconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Wire, frozen=True):
    """A lease, as used for heartbeats and elections."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


class DeviceAttribute(Wire, frozen=True):
    """Exactly one of the fields is set; their wire names would shadow built-in types."""

    int_: int | None = field(default=None, name="int")
    bool_: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class CapacityRange(Wire, frozen=True):
    """Amounts that may be asked for, as quantities."""

    min: str = ""
    max: str | None = None
    step: str | None = None


class CapacityRequestPolicy(Wire, frozen=True):
    """How an asked amount is rounded, and the amount taken when none is asked."""

    default: str | None = None
    valid_values: tuple[str, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Wire, frozen=True):
    """A divisible amount of a device, as a quantity."""

    value: str
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(Wire, frozen=True):
    """Keeps claims away from a device; unknown effects count as `None`."""

    key: str
    effect: str
    value: str = ""


class Device(Wire, frozen=True):
    """A device of a slice."""

    name: str
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    allow_multiple_allocations: bool = False
    taints: tuple[DeviceTaint, ...] = ()


class ResourcePool(Wire, frozen=True):
    """The pool that a slice is a part of."""

    name: str
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Wire, frozen=True):
    """The devices that a driver offers on a node."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    devices: tuple[Device, ...] = ()


class ResourceSlice(Wire, frozen=True):
    """A part of a pool of devices."""

    metadata: ObjectMeta
    spec: ResourceSliceSpec


class OpaqueConfig(Wire, frozen=True):
    """Parameters for one driver; always a JSON object."""

    driver: str
    parameters: dict[str, Any] | None = None


class DeviceClassConfig(Wire, frozen=True):
    """One entry of a class's configuration."""

    opaque: OpaqueConfig | None = None


class DeviceClassSpec(Wire, frozen=True):
    """What a class gives besides its selectors."""

    config: tuple[DeviceClassConfig, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Wire, frozen=True):
    """A kind of device that claims name."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceAllocationConfig(Wire, frozen=True):
    """Configuration of an allocation, the class's entries first; no requests means all."""

    source: str
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfig | None = None


class DeviceRequestAllocationResult(Wire, frozen=True):
    """One device for one request (`main`, or `main/sub` of a firstAvailable request)."""

    request: str
    driver: str
    pool: str
    device: str
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: dict[str, str] = {}
    admin_access: bool | None = None


class DeviceAllocationResult(Wire, frozen=True):
    """All devices of a claim."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfig, ...] = ()


class AllocationResult(Wire, frozen=True):
    """What the scheduler gave to a claim; written once."""

    devices: DeviceAllocationResult = DeviceAllocationResult()


class ResourceClaimConsumer(Wire, frozen=True):
    """Somebody who may use a claim now, usually a pod (empty group)."""

    resource: str
    name: str
    uid: str
    api_group: str = ""


class ResourceClaimStatus(Wire, frozen=True):
    """What was allocated, and for whom it is held."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumer, ...] = ()


class ResourceClaim(Wire, frozen=True):
    """A claim, as far as a driver on a node needs it."""

    metadata: ObjectMeta
    status: ResourceClaimStatus = ResourceClaimStatus()
