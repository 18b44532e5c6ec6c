"""Nodes, pods and events (k8s.io/api, core/v1)."""

from msgspec import field

from casaba.wire.kubernetes.meta import ObjectMeta, Wire


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


class Event(Wire, frozen=True):
    """A line in `kubectl describe`."""

    metadata: ObjectMeta
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
