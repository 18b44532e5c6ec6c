"""One network namespace for the cloud, one per edge node, a link from each node to the cloud.

Every interface is made inside these namespaces: no network of the machine's own is touched.
Cloud and pods reach each other by routes, without address translation.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.commands import run
from tests.cluster.settings import (
    CLOUD,
    CLOUD_ADDRESS,
    SERVICE_ADDRESS,
    BedSettings,
    NodeSettings,
)

_NAMESPACES = Path("/run/netns")
_PREFIX_BITS = 24
_BRIDGE = "br0"
_NODE_INTERFACE = "eth0"


def create(settings: BedSettings) -> None:
    """Make all namespaces and links of the bed."""
    for member in (CLOUD, *(node.name for node in settings.nodes)):
        _add_namespace(settings.network_namespace(member))
    cloud = settings.network_namespace(CLOUD)
    _ip_batch(cloud, _cloud_commands())
    for node in settings.nodes:
        _ip_batch(cloud, _link_commands(node, settings.network_namespace(node.name)))
        _ip_batch(settings.network_namespace(node.name), _node_commands(node))


def remove(bed_name: str) -> None:
    """Remove every namespace of the bed, also those of a run of which nothing else is left."""
    for file in _NAMESPACES.glob(f"{bed_name}-*"):
        subprocess.run(["umount", "-n", "--lazy", str(file)], capture_output=True, check=False)
        file.unlink(missing_ok=True)
    _drop_namespace_folder()


def set_link(settings: BedSettings, node: NodeSettings, *, up: bool) -> None:
    """Cut (`up` false) or heal the link between a node and the cloud."""
    state = "up" if up else "down"
    _ip_batch(settings.network_namespace(CLOUD), [f"link set {node.uplink} {state}"])


def link_is_up(settings: BedSettings, node: NodeSettings) -> bool:
    done = subprocess.run(
        ["ip", "-n", settings.network_namespace(CLOUD).name, "link", "show", node.uplink, "up"],
        capture_output=True,
        text=True,
        check=False,
    )
    return bool(done.stdout.strip())


def entering(namespace: Path) -> list[str]:
    """Command prefix that runs a program in `namespace`.

    Not `ip netns exec`: that mounts /sys anew, and the kubelet then finds no cgroup mounts.
    """
    return ["/usr/bin/nsenter", f"--net={namespace}"]


def _cloud_commands() -> list[str]:
    return [
        "link set lo up",
        f"link add {_BRIDGE} type bridge",
        f"addr add {CLOUD_ADDRESS}/{_PREFIX_BITS} dev {_BRIDGE}",
        f"addr add {SERVICE_ADDRESS}/32 dev {_BRIDGE}",
        f"link set {_BRIDGE} up",
    ]


def _link_commands(node: NodeSettings, namespace: Path) -> list[str]:
    return [
        f"link add {node.uplink} type veth peer name {_NODE_INTERFACE} netns {namespace.name}",
        f"link set {node.uplink} master {_BRIDGE} up",
        f"route add {node.pod_subnet} via {node.address} dev {_BRIDGE}",
    ]


def _node_commands(node: NodeSettings) -> list[str]:
    return [
        "link set lo up",
        f"addr add {node.address}/{_PREFIX_BITS} dev {_NODE_INTERFACE}",
        f"link set {_NODE_INTERFACE} up",
        f"route add default via {CLOUD_ADDRESS}",
    ]


def _drop_namespace_folder() -> None:
    """Undo what the first `ip netns add` does to /run/netns, unless it holds namespaces."""
    if _NAMESPACES.is_dir() and not any(_NAMESPACES.iterdir()):
        subprocess.run(["umount", "-n", str(_NAMESPACES)], capture_output=True, check=False)
        with contextlib.suppress(OSError):
            _NAMESPACES.rmdir()


def _add_namespace(file: Path) -> None:
    # Not unshare(1): ip makes the folder a mount of its own first, and would cover ours with it.
    run(["ip", "netns", "add", file.name])
    forwarding = ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]
    run([*entering(file), *forwarding])


def _ip_batch(namespace: Path, commands: Sequence[str]) -> None:
    run(["ip", "-n", namespace.name, "-batch", "-"], "\n".join(commands))
