"""Slices, classes and claims (k8s.io/api, resource/v1)."""

from typing import Any

from msgspec import field

from casaba.wire.kubernetes.meta import ObjectMeta, Wire


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
