"""One edge node: containerd, kubelet and agent in the node's own namespaces."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import (
    certificates,
    cgroups,
    control_plane,
    device_plugin,
    driver_root,
    host_driver,
    images,
    mounts,
    network,
    node_configs,
    processes,
)
from tests.cluster.agent import agent_command, agent_flags
from tests.cluster.build import Programs
from tests.cluster.certificates import KeyPair
from tests.cluster.commands import run
from tests.cluster.processes import Daemon
from tests.cluster.settings import BedSettings, NodeSettings
from tests.cluster.waiting import wait_until

DAEMONS = ("containerd", "kubelet", "agent")
_DEVICE_PLUGIN = "device-plugin"
_REPOSITORY = Path(__file__).parents[2]
_CONTAINERD_TIMEOUT_S = 30.0
# A server closes its sockets on SIGTERM before it ends; an agent may wait for calls in flight.
_STOP_TIMEOUT_S = 15.0


@dataclass(frozen=True)
class Node:
    """Operations on one node; everything they need lies in the bed's state folder."""

    bed: BedSettings
    settings: NodeSettings
    programs: Programs

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def folder(self) -> Path:
        """The node's folder, outside its namespaces."""
        return self.bed.node_folder(self.name)

    def path(self, inside: str) -> Path:
        """Where one of the node's own paths (`/run/…`, `/var/lib/…`) lies for the caller."""
        return mounts.outside_path(self.folder, inside)

    def log(self, daemon: str) -> Path:
        """The log of `containerd`, `kubelet` or `agent`."""
        return self._daemon(daemon).log

    # -- the network and the power switch

    def cut(self) -> None:
        """Cut the link to the cloud; containers run on."""
        network.set_link(self.bed, self.settings, up=False)

    def heal(self) -> None:
        """Connect the node to the cloud again."""
        network.set_link(self.bed, self.settings, up=True)

    def is_cut(self) -> bool:
        return not network.link_is_up(self.bed, self.settings)

    def reboot(self) -> None:
        """Power off without warning, then boot; what ran before starts again.

        Everything below /run is gone and the boot id is another one. The link stays as it is.
        """
        enabled = [name for name in DAEMONS if self._daemon(name).pidfile.exists()]
        self.power_off()
        self.boot()
        for name in enabled:
            self.start(name)

    def power_off(self) -> None:
        """End every process of the node at once and drop what a real one keeps in memory."""
        cgroups.kill(self.bed.cgroup(self.name))
        mounts.shut_down(self.folder, self.bed.mount_namespace(self.name))
        cgroups.remove(self.bed.cgroup(self.name))

    def boot(self) -> None:
        """Make the node's namespaces and temporary folders; daemons are started apart."""
        cgroup = self.bed.cgroup(self.name)
        mounts.boot(self.folder, self.bed.mount_namespace(self.name), cgroup)
        driver_root.write_cards(self.path(node_configs.SIMULATED_DIR), self.settings.cards)

    # -- the driver, as the GPU Operator's container brings it

    def remove_driver(self) -> None:
        """Take the driver root away, as at the end of the container that brought it."""
        self.run_in_namespaces(["/bin/umount", "-n", "--lazy", mounts.DRIVER_ROOT])

    def bring_driver(self) -> None:
        """Mount the driver root again, as a new container of the operator's does."""
        root = str(self.path(mounts.DRIVER_ROOT))
        self.run_in_namespaces(["/bin/mount", "-n", "--bind", root, mounts.DRIVER_ROOT])

    # -- a device plugin that offers cards

    def start_device_plugin(self, resource: str) -> None:
        """Have the kubelet told, through its own socket, of a device of this resource."""
        processes.start(self._daemon(_DEVICE_PLUGIN, resource))

    def stop_device_plugin(self) -> None:
        """End the plugin and have the kubelet forget it, for which it else takes minutes."""
        self.stop(_DEVICE_PLUGIN)
        self.stop("kubelet")
        self.path(device_plugin.CHECKPOINT).unlink(missing_ok=True)
        self.start("kubelet")

    # -- the driver, as installed on the node itself

    def install_driver(self) -> None:
        """Put driver and device nodes where a host has them."""
        host_driver.install(self.folder, self._in_namespaces)

    def uninstall_driver(self) -> None:
        """Take them away again."""
        host_driver.uninstall(self._in_namespaces)

    def _in_namespaces(self, script: str) -> None:
        self.run_in_namespaces(["/bin/sh", "-ec", script])

    # -- daemons and programs

    def start(self, daemon: str) -> None:
        """Start `containerd` (and wait until it answers), `kubelet` or `agent`."""
        processes.start(self._daemon(daemon))
        if daemon == "containerd":
            self._wait_for_containerd()

    def start_agent_by(self, program: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start the agent by another program than `casaba node-agent`, with the same flags."""
        agent = self._daemon("agent")
        flags = agent_flags(self.bed, self.settings, self.programs)
        argv = [*self._entering(), *program, *flags]
        processes.start(dataclasses.replace(agent, argv=argv, environment=environment))

    def stop(self, daemon: str) -> None:
        """Ask a daemon to end and wait for it."""
        processes.stop(self._daemon(daemon), timeout_s=_STOP_TIMEOUT_S)

    def kill(self, daemon: str) -> None:
        """SIGKILL a daemon alone; its containers and shims live on."""
        processes.stop(self._daemon(daemon), signal.SIGKILL)

    def restart(self, daemon: str) -> None:
        """Stop a daemon and start it again."""
        self.stop(daemon)
        self.start(daemon)

    def pid(self, daemon: str) -> int | None:
        """PID of a running daemon; None if it does not run."""
        return processes.running(self._daemon(daemon).pidfile)

    def require_running(self, daemon: str) -> None:
        """
        Raises:
            BedError: the daemon has ended; the message carries the end of its log.
        """
        processes.require_running(self._daemon(daemon))

    def run_in_namespaces(
        self, argv: Sequence[str], *, check: bool = True, timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a short program as the node's daemons see the world; paths must be absolute.

        Raises:
            subprocess.CalledProcessError: it failed and `check` is set.
        """
        return subprocess.run(
            [*self._entering(), *argv],
            check=check,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    def import_image(self, archive: Path) -> None:
        """Put a docker-archive into the node's image store."""
        run([*self._entering(), *self._ctr(), "images", "import", "--local", str(archive)])

    # -- once, before the first boot

    def write_files(self, authority: KeyPair) -> None:
        """Certificates, configuration, driver root and sysfs of the node."""
        etc = self.folder / "etc"
        (etc / "cni").mkdir(parents=True)
        self._write_identities(authority, etc)
        shim_folder = str(self.programs.folder("containerd-shim-runc-v2"))
        default_spec = json.loads(run([self.programs["ctr"], "oci", "spec"]))
        configs = {
            "containerd.toml": node_configs.containerd(str(etc), images.PAUSE, shim_folder),
            "runtime-spec.json": node_configs.runtime_spec(default_spec),
            "cni/10-bed.conflist": node_configs.cni(self.settings),
            "kubelet.json": node_configs.kubelet(str(etc)),
        }
        for name, content in configs.items():
            (etc / name).write_text(content)
        driver_root.create_sysfs(self.folder / "sysfs", self.settings.cards)
        if self.settings.cards:
            driver_root.create(self.folder / "driver", self.settings.cards)

    def _write_identities(self, authority: KeyPair, etc: Path) -> None:
        shutil.copy(authority.crt, etc / "ca.crt")
        certificates.server(
            authority, etc, "kubelet-server", [self.name, self.settings.address, "127.0.0.1"]
        )
        users = {
            "kubelet": (f"system:node:{self.name}", ["system:nodes"]),
            "agent": (control_plane.AGENT_USER, []),
        }
        for name, (user, groups) in users.items():
            identity = certificates.client(authority, etc, name, user, groups)
            kubeconfig = etc / f"{name}.kubeconfig"
            certificates.write_kubeconfig(kubeconfig, control_plane.API_URL, authority, identity)

    def _daemon(self, name: str, *arguments: str) -> Daemon:
        commands = {
            "containerd": self._containerd_command(),
            "kubelet": self._kubelet_command(),
            "agent": agent_command(self.bed, self.settings, self.programs),
            _DEVICE_PLUGIN: [sys.executable, "-P", "-m", device_plugin.__name__],
        }
        return Daemon(
            name,
            [*self._entering(), *commands[name], *arguments],
            self.folder / "daemons",
            f"{self.bed.cgroup(self.name)}/daemons",
            {"PYTHONPATH": str(_REPOSITORY)} if name == _DEVICE_PLUGIN else {},
        )

    def _containerd_command(self) -> list[str]:
        return [self.programs["containerd"], f"--config={self.folder / 'etc/containerd.toml'}"]

    def _kubelet_command(self) -> list[str]:
        etc = self.folder / "etc"
        labels = ",".join(f"{key}={value}" for key, value in self.settings.labels.items())
        return [
            self.programs["kubelet"],
            f"--config={etc / 'kubelet.json'}",
            f"--kubeconfig={etc / 'kubelet.kubeconfig'}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.settings.address}",  # without it a loopback address is refused
            *([f"--node-labels={labels}"] if labels else []),
            "--v=2",
        ]

    def _entering(self) -> list[str]:
        return [
            *network.entering(self.bed.network_namespace(self.name)),
            f"--mount={self.bed.mount_namespace(self.name)}",
        ]

    def _ctr(self) -> list[str]:
        return [self.programs["ctr"], f"--address={node_configs.CONTAINERD_SOCKET}", "-n=k8s.io"]

    def _wait_for_containerd(self) -> None:
        log = self.log("containerd")
        wait_until(
            f"containerd of {self.name} answers",
            lambda: self.run_in_namespaces([*self._ctr(), "version"], check=False).returncode == 0,
            _CONTAINERD_TIMEOUT_S,
            still_worth_it=lambda: self.require_running("containerd"),
            explain=lambda: f"The end of {log}:\n{processes.log_tail(log)}",
        )
