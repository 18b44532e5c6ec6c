"""What an operator can set on `casaba doctor`."""

from dataclasses import dataclass, field
from pathlib import Path

from casaba.settings.conversion import ConversionSettings
from casaba.settings.host_paths import HostPaths
from casaba.settings.node_agent import GPU_NODE_LABEL
from casaba.settings.uninstall import HelmRelease


@dataclass(frozen=True, kw_only=True)
class Names:
    """What things are called, where the chart lets people choose."""

    node_labels: tuple[tuple[str, str], ...] = (GPU_NODE_LABEL,)
    """Labels and values of the nodes whose cards are served; a node has all of them."""

    namespace: str | None = None
    """Of the release; None: that of its pods, else hami-system."""

    lease: str = "casaba-controller"
    """The controller's Lease."""

    resource: str = "nvidia.com/gpu"
    """Classic resource: cards."""

    amounts: tuple[str, ...] = ConversionSettings().resources[1:]
    """Classic resources: what is asked for of each card, and the priority."""

    mutating: str = "hami-dra-webhook"
    """Our MutatingWebhookConfiguration."""

    validating: str = "hami-dra-webhook"
    """Our ValidatingWebhookConfiguration."""

    @property
    def converted(self) -> tuple[str, ...]:
        """All classic resources."""
        return (self.resource, *self.amounts)


@dataclass(frozen=True, kw_only=True)
class DoctorSettings:
    """Everything that the doctor reads from flags and environment, in one value."""

    kubeconfig: Path | None = None
    """How to reach the API server; None: as kubectl finds it, or the pod's service account."""

    names: Names = field(default_factory=Names)
    """What to look for."""

    release: HelmRelease = field(default_factory=HelmRelease)
    """What people are to name when an uninstall is refused."""

    node: str | None = None
    """Only this node of the cluster; None: all that are labelled."""

    trial_namespace: str = "default"
    """Where a classic pod is tried by a dry run."""

    look_s: float = 10.0
    """How long one observation may take, in seconds."""

    metrics_restricted: bool = False
    """Whether a NetworkPolicy lets only some ask for metrics, maybe not the API server."""

    metrics_port: int = 9394
    """Where agents serve their metrics, if their pods don't say."""

    webhook_metrics_port: int = 8080
    """Where the webhook's replicas serve theirs, if their pods don't say."""

    paths: HostPaths = field(default_factory=HostPaths)
    """Where things are on the host."""

    driver_root: Path | None = None
    """Root of the NVIDIA driver's files; None: the first usual one that has them."""

    host_root: Path = Path("/")
    """Where the host's own files are, such as containerd's configuration."""

    containerd_config: Path = Path("/etc/containerd/config.toml")
    """Read where containerd itself can't be asked."""
