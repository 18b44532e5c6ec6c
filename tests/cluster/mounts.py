"""One mount namespace per node, in which the default paths are the node's own folders.

| in the node    | outside its namespaces | life                  |
|----------------|------------------------|-----------------------|
| /run           | <node folder>/run      | tmpfs, gone at reboot |
| /var/lib       | <node folder>/lib      | persistent            |
| /var/log       | <node folder>/log      | persistent            |
| DRIVER_ROOT    | <node folder>/driver   | persistent            |
| the boot id    | <node folder>/etc/boot_id | new at each boot   |
| each hierarchy's root below /sys/fs/cgroup | the node's cgroup | gone at reboot |
| some of /proc/sys | <node folder>/etc/sysctl | new at each boot |
"""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path

from tests.cluster import cgroups
from tests.cluster.commands import run
from tests.cluster.errors import BedError

# Where the GPU Operator puts a containerised driver.
DRIVER_ROOT = "/run/nvidia/driver"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
# A kubelet sets these for the whole machine. It may believe that it has done so.
_SHIELDED_SYSCTLS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
_BOUND = {"/run": "run", "/var/lib": "lib", "/var/log": "log", DRIVER_ROOT: "driver"}
_PERSISTENT = ("lib", "log", "etc", "driver", "sysfs")


# `-n` everywhere: without it mount(8) keeps a table below /run/mount.


def create_namespace_folder(folder: Path) -> None:
    """Make `folder` a mount of its own with private propagation, as files of mount namespaces
    need (unshare(1))."""
    folder.mkdir(parents=True, exist_ok=True)
    run(["mount", "-n", "-t", "tmpfs", "-o", "mode=0700", "casaba-bed", str(folder)])
    run(["mount", "-n", "--make-private", str(folder)])


def boot(node_folder: Path, namespace: Path, cgroup: str) -> None:
    """Make a node's folders, fresh temporary ones among them, its cgroup and mount namespace."""
    for name in (*_PERSISTENT, "run"):
        (node_folder / name).mkdir(parents=True, exist_ok=True)
    run(["mount", "-n", "-t", "tmpfs", "-o", "mode=0755", "casaba-bed", str(node_folder / "run")])
    (node_folder / "run" / DRIVER_ROOT.removeprefix("/run/")).mkdir(parents=True)
    (node_folder / "etc" / "boot_id").write_text(f"{uuid.uuid4()}\n")
    for name in _SHIELDED_SYSCTLS:
        copy = node_folder / "etc" / "sysctl" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((Path("/proc/sys") / name).read_bytes())
    cgroups.create(cgroup)
    namespace.touch()
    run(["unshare", f"--mount={namespace}", "--propagation", "private", "true"])
    run([*entering(namespace), "/bin/sh", "-ec", _binding_script(node_folder, cgroup)])


def shut_down(node_folder: Path, namespace: Path) -> None:
    """Drop the mount namespace and the temporary folders; nothing may run in them any more."""
    _unmount(namespace)
    namespace.unlink(missing_ok=True)
    _unmount(node_folder / "run")


def unmount_below(folder: Path) -> None:
    """Unmount everything below `folder`, deepest first."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    points = [Path(line.split()[1].encode().decode("unicode_escape")) for line in lines]
    for point in sorted(points, key=lambda path: len(path.parts), reverse=True):
        if point.is_relative_to(folder):
            _unmount(point)


def outside_path(node_folder: Path, path: str) -> Path:
    """Where a path of the node lies for a process outside the node's namespaces.

    Raises:
        BedError: the path is not one that each node has to itself.
    """
    asked = Path("/run" + path.removeprefix("/var/run") if path.startswith("/var/run") else path)
    for bound in sorted(_BOUND, key=len, reverse=True):
        if asked.is_relative_to(bound):
            return node_folder / _BOUND[bound] / asked.relative_to(bound)
    raise BedError(f"{path} is not below one of a node's own folders: {', '.join(_BOUND)}")


def entering(namespace: Path) -> list[str]:
    """Command prefix that runs a program in the mount namespace; the working folder becomes /."""
    return ["/usr/bin/nsenter", f"--mount={namespace}"]


def _binding_script(node_folder: Path, cgroup: str) -> str:
    binds = {inside: node_folder / outside for inside, outside in _BOUND.items()}
    etc = node_folder / "etc"
    binds[_BOOT_ID] = etc / "boot_id"
    binds |= {f"/proc/sys/{name}": etc / "sysctl" / name for name in _SHIELDED_SYSCTLS}
    lines = [f"mount -n --bind '{outside}' '{inside}'" for inside, outside in binds.items()]
    for hierarchy in cgroups.hierarchies():
        lines += _replacing_root(hierarchy, hierarchy / cgroup.lstrip("/"))
    # Volumes with Bidirectional propagation need a shared root.
    return "\n".join([*lines, "mount -n --make-rshared /"])


def _replacing_root(hierarchy: Path, group: Path) -> list[str]:
    """Commands that make `group` the root of its hierarchy.

    The container runtime puts containers into groups right below the root, on every node alike.
    It believes the first mount in the table, so the whole hierarchy must go, not be covered.
    """
    aside = "/run/cgroup"
    return [
        f"mkdir '{aside}'",
        f"mount -n --bind '{group}' '{aside}'",
        f"umount -n '{hierarchy}'",
        f"mount -n --move '{aside}' '{hierarchy}'",
        f"rmdir '{aside}'",
    ]


def _unmount(point: Path) -> None:
    subprocess.run(["umount", "-n", "--lazy", str(point)], capture_output=True, check=False)
