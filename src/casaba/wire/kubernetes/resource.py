"""Slices, classes and claims (k8s.io/api, resource/v1)."""

from typing import Any

from msgspec import field

from casaba.wire.kubernetes.meta import ObjectMeta, Wire
from casaba.wire.kubernetes.node_selection import NodeSelector


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
    time_added: str | None = None


class Counter(Wire, frozen=True):
    """An amount that the devices of a pool take from together, as a quantity."""

    value: str


class CounterSet(Wire, frozen=True):
    """Counters of a pool, such as the parts of one card."""

    name: str
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(Wire, frozen=True):
    """What a device takes from a counter set while it is allocated."""

    counter_set: str
    counters: dict[str, Counter] = {}


class Device(Wire, frozen=True):
    """A device of a slice; where it is reachable is told here only if the slice says so."""

    name: str
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(Wire, frozen=True):
    """The pool that a slice is a part of."""

    name: str
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Wire, frozen=True):
    """Devices that a driver offers, or the counters that devices of the pool share.

    One of the four fields on nodes says where the devices can be used.
    """

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


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


class CelSelector(Wire, frozen=True):
    """A condition on `device`, in the Common Expression Language."""

    expression: str


class DeviceSelector(Wire, frozen=True):
    """A condition that devices must meet; without `cel` it is of a kind that we don't know."""

    cel: CelSelector | None = None


class DeviceClassSpec(Wire, frozen=True):
    """Which devices are of a class, and what goes to the driver with them."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfig, ...] = ()


class DeviceClass(Wire, frozen=True):
    """A kind of device that claims name."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequirements(Wire, frozen=True):
    """Amounts asked of a device, as quantities; keys are compared letter by letter."""

    requests: dict[str, str] = {}


class DeviceToleration(Wire, frozen=True):
    """Taints that a request puts up with: all keys and all effects where they are empty."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class DeviceSubRequest(Wire, frozen=True):
    """One alternative of a request."""

    name: str
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(Wire, frozen=True):
    """What a request without alternatives asks for."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Wire, frozen=True):
    """A request of a claim: exactly one thing, or the first of several that can be had."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Wire, frozen=True):
    """How the devices of a claim must relate; no requests means all."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfig(Wire, frozen=True):
    """One entry of a claim's configuration; no requests means all."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueConfig | None = None


class DeviceClaim(Wire, frozen=True):
    """All that a claim asks for."""

    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfig, ...] = ()


class ResourceClaimSpec(Wire, frozen=True):
    """What a claim asks for; never changes."""

    devices: DeviceClaim = DeviceClaim()


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
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


class DeviceAllocationResult(Wire, frozen=True):
    """All devices of a claim."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfig, ...] = ()


class AllocationResult(Wire, frozen=True):
    """What the scheduler gave to a claim and where it can be used; written once."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


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
    """A claim: what is asked for, and what was given."""

    metadata: ObjectMeta
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
