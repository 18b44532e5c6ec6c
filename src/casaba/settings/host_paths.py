"""Where casaba keeps things on a host. The container side of the guard's paths is fixed."""

from dataclasses import dataclass
from pathlib import Path

from casaba.settings import _host_paths as fixed

DRIVER_NAME = "hami-core-gpu.project-hami.io"
"""Name of the DRA driver and of its DeviceClass, kept from HAMi."""

CONTAINER_RUN_DIR = Path(fixed.RUN_DIR)
"""Where a container sees its policy files and regions; the guard looks nowhere else."""

CONTAINER_PRELOAD_FILE = Path(fixed.PRELOAD_FILE)
"""The loader's list of libraries for every program of the container."""

GUARD_LIBRARY = fixed.GUARD_LIBRARY
"""File name of the guard."""

SIMULATED_DIR = Path(fixed.SIMULATED_DIR)
"""Default folder of a virtual card's settings and state."""


@dataclass(frozen=True, kw_only=True)
class HostPaths:
    """Host side of the paths; a bed or a packager may move them."""

    run_dir: Path = Path(fixed.RUN_DIR)
    """Policy files, regions, per-card schedules; tmpfs."""

    state_dir: Path = Path(fixed.STATE_DIR)
    """Guard libraries and the toolkit's hook; survives reboots."""

    kubelet_dir: Path = Path(fixed.KUBELET_DIR)
    """The kubelet's --root-dir: plugin sockets and our checkpoint live under it."""

    cdi_dir: Path = Path(fixed.CDI_DIR)
    """CDI specs that the container runtime reads; tmpfs."""

    @property
    def claims_dir(self) -> Path:
        """One folder per claim UID, in it one per request."""
        return self.run_dir / fixed.CLAIMS

    @property
    def gpus_dir(self) -> Path:
        """One schedule per card, shared by its tenants."""
        return self.run_dir / fixed.GPUS

    @property
    def plugin_dir(self) -> Path:
        """The driver's folder: DRA socket and checkpoint."""
        return self.kubelet_dir / "plugins" / DRIVER_NAME

    @property
    def checkpoint_dir(self) -> Path:
        """One file per prepared claim."""
        return self.plugin_dir / "claims"

    @property
    def registry_dir(self) -> Path:
        """Where the kubelet looks for registration sockets."""
        return self.kubelet_dir / "plugins_registry"
