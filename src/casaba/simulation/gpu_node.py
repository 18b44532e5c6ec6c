"""The host side of a simulated GPU node: its folders, its virtual cards, its way to the cluster."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casaba.errors import HostError
from casaba.node.files import make_folder, write_whole
from casaba.settings.host_paths import HostPaths
from casaba.settings.simulation import LocalImage, SimulatedKubeletSettings
from casaba.simulation.card_spec import card_spec
from casaba.simulation.gpu_host import make_gpu_host, make_sysfs, virtual_cards

SIMULATED_STATE = "CASABA_SIMULATED_DIR"
"""Tells the stand-in driver where the node's virtual cards are."""

_LONGEST_SOCKET = "kubelet/plugins_registry/hami-core-gpu.project-hami.io-reg.sock"
_SOCKET_PATH_BYTES = 107


@dataclass(frozen=True, kw_only=True)
class GpuNodeSettings:
    """What one simulated node is to be."""

    name: str
    """Name of the Node object, and of its pool of devices."""

    labels: Mapping[str, str] = field(default_factory=lambda: {"gpu": "on"})

    cards: tuple[str, ...] = ("A10",)
    """Models of its virtual cards; none: a node without driver."""

    images: Mapping[str, LocalImage] = field(default_factory=dict)
    """What stands for which container image."""


@dataclass(frozen=True, kw_only=True)
class GpuNode:
    """A node's folders below one of its own, laid out by `create`."""

    settings: GpuNodeSettings
    folder: Path
    driver: Path
    """Folder of the stand-in driver's libraries and nvidia-smi."""

    @property
    def paths(self) -> HostPaths:
        """Where the node agent keeps things on this host."""
        return HostPaths(
            run_dir=self.folder / "run",
            state_dir=self.folder / "state",
            kubelet_dir=self.folder / "kubelet",
            cdi_dir=self.folder / "cdi",
        )

    @property
    def cards_dir(self) -> Path:
        """Settings and state of the virtual cards."""
        return self.folder / "cards"

    @property
    def kubeconfig(self) -> Path:
        """The node agent's way to the API server."""
        return self.folder / "agent.kubeconfig"

    def create(self, agent_kubeconfig: Mapping[str, Any]) -> None:
        """Lay out the folders; raises HostError, also when sockets would not fit below them."""
        self._check_socket_length()
        cards = virtual_cards(self.settings.cards)
        for folder in (self.paths.kubelet_dir, self.paths.cdi_dir, self.cards_dir):
            make_folder(folder)
        make_gpu_host(self.cards_dir, cards)
        make_sysfs(self.folder / "sys", cards)
        files = {
            self.folder / "card-spec.json": card_spec(cards, self.driver),
            self.kubeconfig: json.dumps(agent_kubeconfig, indent=1).encode(),
        }
        for path, content in files.items():
            write_whole(path, content, mode=0o600, durable=False)

    def kubelet_settings(self) -> SimulatedKubeletSettings:
        """The kubelet of this node."""
        return SimulatedKubeletSettings(
            node_name=self.settings.name,
            root=self.paths.kubelet_dir,
            labels=self.settings.labels,
            images=self.settings.images,
            cdi_dirs=(self.paths.cdi_dir,),
            environment=self.environment(),
        )

    def environment(self) -> dict[str, str]:
        """Variables with which a process finds this node's cards."""
        return {SIMULATED_STATE: str(self.cards_dir)}

    def agent_flags(self) -> tuple[str, ...]:
        """The flags of `casaba node-agent` on this node."""
        paths = self.paths
        flags = {
            "--node-name": self.settings.name,
            "--kubeconfig": self.kubeconfig,
            "--kubelet-dir": paths.kubelet_dir,
            "--cdi-dir": paths.cdi_dir,
            "--run-dir": paths.run_dir,
            "--state-dir": paths.state_dir,
            "--driver-root": self.driver,
            "--sysfs-root": self.folder / "sys",
            "--card-spec": self.folder / "card-spec.json",
            "--context-size": 0,
            "--metrics-address": "127.0.0.1:0",
        }
        return tuple(f"{flag}={value}" for flag, value in flags.items())

    def _check_socket_length(self) -> None:
        longest = len(bytes(self.folder / _LONGEST_SOCKET))
        if longest > _SOCKET_PATH_BYTES:
            raise HostError(
                f"sockets below {self.folder} would have paths of {longest} bytes, the kernel "
                f"takes {_SOCKET_PATH_BYTES}; choose a shorter folder (TMPDIR, XDG_RUNTIME_DIR)"
            )
