"""What is looked at on a node. Each observation is there, or says why it could not be made."""

from dataclasses import dataclass

from casaba.policy.diagnosis.finding import NOT_ASKED, Unseen
from casaba.wire.node_report import NodeReport

AS_ROOT = (
    "run it as root on the node, or in the agent's pod: kubectl exec POD -- casaba doctor --node"
)
"""What to do where something may not be looked at."""


@dataclass(frozen=True, kw_only=True)
class DriverSeen:
    """Where the driver's libraries are."""

    root: str
    library: str | None
    """NVML below that root; None when it is not there."""
    elsewhere: tuple[str, ...]
    """Other usual roots below which it is."""


@dataclass(frozen=True, kw_only=True)
class NvmlSeen:
    """What the driver answers."""

    driver_version: str
    cards: tuple[str, ...]
    """Product names."""


@dataclass(frozen=True, kw_only=True)
class ToolkitSeen:
    """The NVIDIA Container Toolkit."""

    programs: tuple[str, ...]
    missing: str | None
    """What is not there, in a sentence; None: all is."""


@dataclass(frozen=True, kw_only=True)
class CdiSeen:
    """The folder of CDI specs."""

    folder: str
    exists: bool
    specs: tuple[str, ...]
    """Our specs that can be read, by file name."""
    damaged: tuple[str, ...]
    """Specs of anybody that can't be read, with the reason."""


@dataclass(frozen=True, kw_only=True)
class RuntimeSeen:
    """How containerd is set up."""

    version: str | None
    """Such as 2.1.4; None where the program is not seen."""
    source: str | None
    """What its configuration was read from; None: there is none."""
    cdi_enabled: bool | None
    """As configured; None: it says nothing."""


@dataclass(frozen=True, kw_only=True)
class KubeletSeen:
    """The kubelet's side of plugins."""

    folder: str
    has_registry: bool
    plugin_sockets: tuple[str, ...]
    registration_sockets: tuple[str, ...]
    pods_told: str | None
    """Why its PodResources socket does not answer; None: it answers."""


@dataclass(frozen=True, kw_only=True)
class GuardSeen:
    """Guards on the host."""

    folder: str
    whole: tuple[str, ...]
    """Versions with library and preload file."""
    broken: tuple[str, ...]
    """Versions that lack one of them."""


@dataclass(frozen=True, kw_only=True)
class CheckpointSeen:
    """Prepared claims on disk."""

    folder: str
    entries: int
    damaged: tuple[str, ...]
    unreadable: str | None = None


@dataclass(frozen=True, kw_only=True)
class RoomSeen:
    """What is left of a file system."""

    folder: str
    free_bytes: int
    needed_bytes: int


@dataclass(frozen=True, kw_only=True)
class HostObservations:
    """A node at one moment."""

    driver: DriverSeen | Unseen = NOT_ASKED
    nvml: NvmlSeen | Unseen = NOT_ASKED
    toolkit: ToolkitSeen | Unseen = NOT_ASKED
    cdi: CdiSeen | Unseen = NOT_ASKED
    runtime: RuntimeSeen | Unseen = NOT_ASKED
    kubelet: KubeletSeen | Unseen = NOT_ASKED
    agent: NodeReport | Unseen = NOT_ASKED
    run_filesystem: tuple[str, str] | Unseen = NOT_ASKED
    """The folder below /run, and the type of its file system."""
    guard: GuardSeen | Unseen = NOT_ASKED
    checkpoint: CheckpointSeen | Unseen = NOT_ASKED
    clock_is_set: bool | Unseen = NOT_ASKED
    """Whether the kernel knows that something keeps its clock right."""
    leftovers: tuple[str, ...] | Unseen = NOT_ASKED
    """What an old HAMi has left on the host."""
    room: tuple[RoomSeen, ...] | Unseen = NOT_ASKED
