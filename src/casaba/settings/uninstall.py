"""What an operator can set on `casaba uninstall` and `casaba node-clean`."""

from dataclasses import dataclass, field
from pathlib import Path

from casaba.settings.host_paths import HostPaths


@dataclass(frozen=True, kw_only=True)
class HelmRelease:
    """What Helm calls the release; words that stand for it where nobody has told."""

    name: str = "RELEASE"
    """The release."""

    revision: str = "REVISION"
    """Its revision, as `helm history` counts them."""

    namespace: str = "NAMESPACE"
    """Where it is installed."""


@dataclass(frozen=True, kw_only=True)
class UninstallSettings:
    """Everything that the uninstall reads from flags and environment, in one value."""

    namespace: str
    """Namespace of the release."""

    release: HelmRelease = field(default_factory=HelmRelease)
    """What people are to name when they go on."""

    kubeconfig: Path | None = None
    """How to reach the API server; None: the service account of the pod."""

    agent: str = "hami-dra-driver-kubelet-plugin"
    """Name of the agents' DaemonSet."""

    cleaner: Path = Path("/etc/casaba/cleaner.json")
    """File with the DaemonSet that cleans the nodes."""

    timeout_s: float = 300.0
    """How long the nodes may take together, in seconds."""

    poll_s: float = 1.0
    """How often the cluster is looked at meanwhile, in seconds."""

    leases: tuple[str, ...] = ()
    """Leases to delete with the leftovers."""

    secrets: tuple[str, ...] = ()
    """Secrets to delete with the leftovers."""


@dataclass(frozen=True, kw_only=True)
class NodeCleanSettings:
    """What is removed from a node, and where that is seen."""

    host_root: Path = Path("/")
    """Where the host's root is seen."""

    paths: HostPaths = field(default_factory=HostPaths)
    """Where things are on the host, as the host itself names them."""

    force: bool = False
    """Whether to remove what prepared claims may use."""
