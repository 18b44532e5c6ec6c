"""Pods and nodes as a control plane reads them: more of their fields than casaba's services need.

For reading only, as all Structs (see casaba.wire.kubernetes).
"""
# ruff: noqa: RUF012  (msgspec copies the empty defaults)

from msgspec import field

from casaba import kube
from casaba.wire.kubernetes import (
    NodeSelector,
    ObjectMeta,
    PodResourceClaim,
    PodResourceClaimStatus,
    Wire,
)

Quantities = dict[str, str | int]
"""Amounts by resource name; servers may pass numbers on as they were written."""


class Taint(Wire, frozen=True):
    """Keeps pods away from a node: NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    effect: str
    value: str = ""
    time_added: str | None = None


class Toleration(Wire, frozen=True):
    """Taints that a pod puts up with; no key and `Exists` means all of them."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeAffinity(Wire, frozen=True):
    """Nodes that a pod needs; what it would merely like is not read."""

    required: NodeSelector | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True):
    """Of the three kinds of affinity only the one to nodes."""

    node_affinity: NodeAffinity | None = None


class ContainerResources(Wire, frozen=True):
    """What a container asks for."""

    requests: Quantities = {}


class Container(Wire, frozen=True):
    """A container, as far as it takes room; an init container that stays has `Always`."""

    name: str
    resources: ContainerResources = ContainerResources()
    restart_policy: str = ""


class SchedulingGate(Wire, frozen=True):
    """Somebody who wants a pod not to be scheduled yet."""

    name: str


class PodSpec(Wire, frozen=True):
    """What a pod asks of a node."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] = ()
    overhead: Quantities = {}
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    preemption_policy: str = ""


class Condition(Wire, frozen=True):
    """One condition of a pod or node."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_heartbeat_time: str | None = None


class PodStatus(Wire, frozen=True):
    """How far a pod has come."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class Pod(Wire, frozen=True):
    """A pod as the scheduler and the controllers see it."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_finished(self) -> bool:
        """Whether it will never run (again)."""
        return self.status.phase in ("Succeeded", "Failed")


class NodeSpec(Wire, frozen=True):
    """What keeps pods away from a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Wire, frozen=True):
    """What a node offers, and how it is."""

    allocatable: Quantities = {}
    conditions: tuple[Condition, ...] = ()


class Node(Wire, frozen=True):
    """A node as the scheduler and the controllers see it."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


PODS = kube.PODS.decoded_as(Pod)
NODES = kube.NODES.decoded_as(Node)
