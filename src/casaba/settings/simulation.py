"""What can be set on the parts of a simulated cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

KubeletVersion = Literal["1.34", "1.35", "1.36", "1.37"]

Isolation = Literal["auto", "namespace", "environment"]


@dataclass(frozen=True, kw_only=True)
class LocalImage:
    """What stands for a container image: a folder of this machine."""

    folder: Path
    """The image's files: working directory of its containers and first entry of their PATH."""

    command: tuple[str, ...] = ()
    """Program and arguments where the container gives none."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of every container; the container's own come after."""


@dataclass(frozen=True, kw_only=True)
class SimulatedKubeletSettings:
    """One simulated node."""

    node_name: str
    """Name of the Node object."""

    root: Path
    """The kubelet's root directory: plugin sockets, checkpoint, logs. Keep it short: a unix
    socket's path has at most 107 bytes."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the Node, beside those that every kubelet sets."""

    version: KubeletVersion = "1.36"
    """The release whose behaviour is wanted."""

    images: Mapping[str, LocalImage] = field(default_factory=dict)
    """What stands for which image reference."""

    cdi_dirs: tuple[Path, ...] = (Path("/etc/cdi"), Path("/var/run/cdi"))
    """Where CDI specs are read; devices of later folders win."""

    isolation: Isolation = "auto"
    """How containers see what CDI mounts: `namespace` (root; a mount namespace each),
    `environment` (a folder of links, LD_PRELOAD and PATH), `auto`: namespace where it can be."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """More variables of every container, such as CASABA_SIMULATED_DIR for virtual cards."""

    capacity: Mapping[str, str] = field(
        default_factory=lambda: {"cpu": "4", "memory": "8Gi", "pods": "110"}
    )
    """Capacity of the Node, as quantities."""

    lease_renewal_s: float = 10.0
    """Seconds between two heartbeats."""

    lease_duration_s: int = 40
    """Seconds after which a node without heartbeat is lost."""

    plugin_poll_s: float = 0.1
    """Seconds between two looks at the registration folder."""

    registration_retry_s: float = 1.0
    """Seconds until a failed registration is tried again."""

    plugin_timeout_s: float = 45.0
    """Limit of one prepare or unprepare call, in seconds."""

    wiping_delay_s: float = 30.0
    """Seconds from a driver's last connection to the deletion of its ResourceSlices."""

    health_retry_s: float = 5.0
    """Seconds until a health stream is opened again."""

    health_timeout_s: float = 30.0
    """Seconds after which a device's health is unknown, where the driver does not say."""

    retry_s: float = 10.0
    """Seconds until a pod whose claims could not be prepared is tried again."""

    reconcile_s: float = 60.0
    """Seconds between two searches for claims of pods that are gone."""

    crash_backoff_s: float = 10.0
    """First delay of CrashLoopBackOff, in seconds; doubles."""

    crash_backoff_limit_s: float = 300.0
    """Longest delay of CrashLoopBackOff, in seconds."""

    log_file_bytes: int = 10 * 1024 * 1024
    """A container's log is rotated beyond this; one older file is kept."""

    @property
    def registry_dir(self) -> Path:
        """Where plugins put their registration sockets."""
        return self.root / "plugins_registry"

    @property
    def checkpoint(self) -> Path:
        """The prepared claims and who uses them."""
        return self.root / "dra_manager_state"

    @property
    def pod_resources_socket(self) -> Path:
        """Where monitoring asks which pod has which devices."""
        return self.root / "pod-resources" / "kubelet.sock"
