"""What it takes to run one container: image, environment, CDI edits, mounts → a process's order."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casaba.errors import CasabaError
from casaba.settings.simulation import LocalImage, SimulatedKubeletSettings
from casaba.simulation.kubelet.cdi_devices import ContainerEdits, DeviceNode, Mount
from casaba.simulation.kubelet.container_words import (
    Sources,
    command_line,
    container_environment,
)
from casaba.simulation.kubelet.processes import ProcessOrder
from casaba.simulation.kubelet.views import make_view, view_variables

Object = Mapping[str, Any]

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ContainerNotCreatable(CasabaError):
    """A container that can't be made as asked for."""


@dataclass(frozen=True, kw_only=True)
class ContainerFolders:
    """Where one container's things are."""

    view: Path
    """Links at the paths of its mounts."""
    scratch: Path
    """Working directory where the image has none; root of its namespace where one is needed."""


@dataclass(frozen=True, kw_only=True)
class ContainerPlan:
    """Everything that is known when a container is about to start."""

    pod: Object
    container: Object
    edits: ContainerEdits
    sources: Sources
    volumes: tuple[Mount, ...]
    folders: ContainerFolders
    settings: SimulatedKubeletSettings
    isolated: bool
    """Whether it gets a mount namespace."""

    def order(self) -> ProcessOrder:
        """What the shim is to do; makes the view's links on the way.

        Raises ContainerNotConfigurable, ContainerNotCreatable and HostError.
        """
        image = self.settings.images.get(self.container["image"], _NO_IMAGE)
        environment = self._environment(image)
        command = command_line(self.container, image.command, environment)
        if not command:
            raise ContainerNotCreatable(self._no_command())
        mounts = self._mounts()
        if not self.isolated:
            make_view(self.folders.view, mounts)
            command = (_on_host(command[0], mounts), *command[1:])
            environment = view_variables(self.folders.view, mounts, environment)
        return ProcessOrder(
            command=command,
            environment=environment,
            folder=self._folder(image),
            mounts=mounts if self.isolated else None,
            scratch=str(self.folders.scratch),
            **self._identity(),
        )

    def _environment(self, image: LocalImage) -> dict[str, str]:
        """The image's, the pod's, the devices'; the devices' come last, as in a runtime."""
        name = self.pod["metadata"]["name"]
        base = {"HOME": "/root", "PATH": DEFAULT_PATH, "HOSTNAME": name, **image.environment}
        result = container_environment(self.container, self.pod, self.sources, base)
        result.update(self.edits.environment)
        result.update(self.settings.environment)
        if image is not _NO_IMAGE:
            result["PATH"] = f"{image.folder}:{result['PATH']}"
        return result

    def _folder(self, image: LocalImage) -> str:
        if wanted := self.container.get("workingDir"):
            return str(wanted)
        return str(self.folders.scratch if image is _NO_IMAGE else image.folder)

    def _mounts(self) -> tuple[Mount, ...]:
        nodes = [node for node in self.edits.device_nodes if _is_elsewhere(node)]
        devices = [Mount(source=n.source, target=n.target, read_only=False) for n in nodes]
        mounts = (*self.edits.mounts, *devices, *self.volumes)
        for mount in mounts:
            if not Path(mount.source).exists():
                raise ContainerNotCreatable(
                    "failed to create containerd task: failed to create shim task: OCI runtime "
                    f"create failed: error mounting {_quoted(mount.source)} to rootfs at "
                    f"{_quoted(mount.target)}: no such file or directory"
                )
        return mounts

    def _identity(self) -> dict[str, int]:
        """User and group of a security context; only root can take another."""
        if os.geteuid() != 0:
            return {}
        context = {
            **(self.pod["spec"].get("securityContext") or {}),
            **(self.container.get("securityContext") or {}),
        }
        wanted = {"user": context.get("runAsUser"), "group": context.get("runAsGroup")}
        found = {key: value for key, value in wanted.items() if value is not None}
        return {"group": 0, **found} if "user" in found else found

    def _no_command(self) -> str:
        known = ", ".join(sorted(self.settings.images)) or "none"
        return (
            f"image {_quoted(self.container['image'])} is not one of this simulated node's "
            f"({known}), and the container has no command: give it one, which then runs with "
            "the programs of this machine"
        )


_NO_IMAGE = LocalImage(folder=Path("/"))


def _on_host(program: str, mounts: tuple[Mount, ...]) -> str:
    """Where a program is that would be mounted."""
    return next((mount.source for mount in mounts if mount.target == program), program)


def _is_elsewhere(node: DeviceNode) -> bool:
    """Whether a device must be brought to its place; raises ContainerNotCreatable."""
    if not Path(node.source).exists():
        raise ContainerNotCreatable(
            "failed to create containerd container: CDI device injection failed: failed to stat "
            f"CDI host device {_quoted(node.source)}: no such file or directory"
        )
    return node.source != node.target


def _quoted(text: str) -> str:
    return f'"{text}"'
