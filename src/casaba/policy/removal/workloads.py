"""DaemonSets, their pods and nodes, as the uninstall sees them (k8s.io/api, apps/v1, core/v1)."""

from casaba.wire.kubernetes import ObjectMeta, Wire


class DaemonSetStatus(Wire, frozen=True):
    """How far its controller has come."""

    observed_generation: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0


class DaemonSet(Wire, frozen=True):
    """A DaemonSet: identity and status."""

    metadata: ObjectMeta
    status: DaemonSetStatus = DaemonSetStatus()

    @property
    def is_going(self) -> bool:
        """Whether its deletion was asked for."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_observed(self) -> bool:
        """Whether its controller has looked at it, so that its status says how many it wants."""
        return self.status.observed_generation >= self.metadata.generation


class ContainerEnd(Wire, frozen=True):
    """Why a container ended, or waits."""

    reason: str = ""
    message: str = ""
    exit_code: int = 0


class ContainerState(Wire, frozen=True):
    """One of the three is there."""

    waiting: ContainerEnd | None = None
    terminated: ContainerEnd | None = None


class ContainerStatus(Wire, frozen=True):
    """How a container does, and how it did before."""

    name: str
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class Condition(Wire, frozen=True):
    """One condition of a pod."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class NodeStatus(Wire, frozen=True):
    """How a node does."""

    conditions: tuple[Condition, ...] = ()


class NodeState(Wire, frozen=True):
    """A node: name, and whether its kubelet answers."""

    metadata: ObjectMeta
    status: NodeStatus = NodeStatus()

    @property
    def is_silent(self) -> bool:
        """Whether pods neither start nor end there: it is not Ready."""
        return not any(
            one.type == "Ready" and one.status == "True" for one in self.status.conditions
        )


class DaemonPodStatus(Wire, frozen=True):
    """How a pod does."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class DaemonPodSpec(Wire, frozen=True):
    """Where it runs; empty while it is not bound."""

    node_name: str = ""


class DaemonPod(Wire, frozen=True):
    """A pod: owner, place and state."""

    metadata: ObjectMeta
    spec: DaemonPodSpec = DaemonPodSpec()
    status: DaemonPodStatus = DaemonPodStatus()

    def belongs_to(self, daemon_set: str) -> bool:
        """Whether a DaemonSet of that name made it, be that still there or not."""
        return any(
            owner.controller and owner.kind == "DaemonSet" and owner.name == daemon_set
            for owner in self.metadata.owner_references
        )

    @property
    def is_going(self) -> bool:
        """Whether its deletion was asked for."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_ready(self) -> bool:
        """Whether its containers are."""
        return any(one.type == "Ready" and one.status == "True" for one in self.status.conditions)

    @property
    def where(self) -> str:
        """The node, else the pod's own name."""
        return f"node {self.spec.node_name}" if self.spec.node_name else self.metadata.name

    @property
    def why_not_ready(self) -> str:
        """What its containers say, else what the pod says, else that nobody says anything."""
        told = self.status
        statuses = (*told.init_container_statuses, *told.container_statuses)
        ends = [end for status in statuses if (end := _trouble(status))]
        scheduled = [
            f"{one.reason}: {one.message}"
            for one in told.conditions
            if one.type == "PodScheduled" and one.status == "False"
        ]
        own = [f"{told.reason}: {told.message}"] if told.reason else []
        return next(iter((*ends, *scheduled, *own)), f"{told.phase or 'Pending'}, {_SILENT}")


_SILENT = "its kubelet says nothing more; is the node up?"
_UNTOLD = ("PodInitializing", "ContainerCreating")


def _trouble(status: ContainerStatus) -> str:
    """Its last words before its reason to wait: that is often only the back-off."""
    ended = status.state.terminated or status.last_state.terminated
    if ended is not None and ended.exit_code:
        words = " ".join(ended.message.split())
        return f"{status.name} ended with {ended.exit_code}: {words or ended.reason or 'no word'}"
    waiting = status.state.waiting
    if waiting is not None and waiting.reason not in _UNTOLD:
        return f"{status.name} waits: {waiting.reason} {waiting.message}".strip()
    return ""
