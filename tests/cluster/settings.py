"""What a bed consists of: plain values, and where each thing lies."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.cluster.errors import BedError

CLOUD = "cloud"
CLOUD_ADDRESS = "10.77.0.1"
# Where pods are told that the Service `kubernetes` is: the API server itself listens there.
SERVICE_ADDRESS = "10.96.0.1"
API_PORT = 443
_RESERVED_NAMES = frozenset({CLOUD, "pki", "ns"})
# Folders that a node's mount namespace covers with its own: nothing of the bed can lie there.
_COVERED = tuple(Path(path) for path in ("/run", "/var/run", "/var/lib", "/var/log"))
# Longest socket below a node's folder, seen from outside its namespaces.
_LONGEST_SOCKET = "lib/kubelet/plugins_registry/hami-core-gpu.project-hami.io-00000000-reg.sock"
_SOCKET_PATH_BYTES = 107


@dataclass(frozen=True)
class Card:
    """One virtual card, as the stand-in driver shows it.

    Attributes:
        model: name of a model that the stand-in driver knows.
        uuid: `GPU-…`, as NVML shows it.
        bus_id: PCI address, `dddd:bb:dd.f`.
    """

    model: str = "A10"
    uuid: str = "GPU-13e066b9-098c-8932-9d26-ea75a943d6ba"
    bus_id: str = "0000:00:03.0"


@dataclass(frozen=True)
class NodeSettings:
    """One edge node.

    Attributes:
        index: position among the nodes from 1; decides the node's addresses.
        labels: set by the kubelet itself when it registers.
        cards: virtual cards of the node; a node without cards has no driver either.
    """

    name: str
    index: int
    labels: dict[str, str] = field(default_factory=dict)
    cards: tuple[Card, ...] = ()

    @property
    def address(self) -> str:
        """The node's address on the cloud's network."""
        return f"10.77.0.{10 + self.index}"

    @property
    def pod_subnet(self) -> str:
        """The node's own /24 for its pods."""
        return f"10.78.{self.index}.0/24"

    @property
    def uplink(self) -> str:
        """The cloud's end of the node's link; down means cut."""
        return f"edge{self.index}"


@dataclass(frozen=True)
class BedSettings:
    """A whole bed.

    Attributes:
        name: prefix of its network namespaces, name of its cgroup.
        state: folder that holds everything the bed writes.
        node_monitor_grace_s: silence after which the cloud calls a node NotReady.
        api_forward_port: loopback port, outside all namespaces, that leads to the API server.
        agent: whether each node runs the node agent, as a process of the host.
        bare: whether nothing of casaba is there yet, not even its class and rights: for what
            installs them.
    """

    name: str
    state: Path
    nodes: tuple[NodeSettings, ...]
    node_monitor_grace_s: int = 50
    api_forward_port: int = 0
    agent: bool = False
    bare: bool = False

    @property
    def pki(self) -> Path:
        return self.state / "pki"

    @property
    def cloud(self) -> Path:
        return self.state / CLOUD

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, usable outside all namespaces."""
        return self.state / "kubeconfig"

    @property
    def namespace_files(self) -> Path:
        """Folder in which the nodes' mount namespaces are kept."""
        return self.state / "ns"

    def network_namespace(self, member: str) -> Path:
        """File of the network namespace of a node, or of `CLOUD`."""
        return Path("/run/netns") / f"{self.name}-{member}"

    def mount_namespace(self, node: str) -> Path:
        return self.namespace_files / f"{node}.mnt"

    def node_folder(self, node: str) -> Path:
        return self.state / node

    def cgroup(self, member: str) -> str:
        """Path of a member's cgroup in every hierarchy, with a leading slash."""
        return f"/{self.name}/{member}"


def default_state(name: str) -> Path:
    """On disk (images are unpacked there) and short (socket paths end at 107 bytes)."""
    return Path("/var/tmp") / name


def check(settings: BedSettings) -> None:
    """Refuse settings that would fail later in a less clear way.

    Raises:
        BedError: says which value is wrong and what to choose instead.
    """
    for node in settings.nodes:
        _check_node_name(node.name)
        longest = len(bytes(settings.node_folder(node.name) / _LONGEST_SOCKET))
        if longest > _SOCKET_PATH_BYTES:
            raise BedError(
                f"sockets of node {node.name} below {settings.state} would be {longest} bytes"
                f" long, the kernel allows {_SOCKET_PATH_BYTES}; choose a shorter --state"
            )
    if settings.agent and settings.bare:
        raise BedError("an agent on the host needs the class and rights that a bare bed lacks")
    if len({node.name for node in settings.nodes}) != len(settings.nodes):
        raise BedError("two nodes have the same name")
    if len(settings.nodes) > 200:
        raise BedError(f"{len(settings.nodes)} nodes: the bed's network has room for 200")
    if any(settings.state.is_relative_to(covered) for covered in _COVERED):
        raise BedError(
            f"--state {settings.state} lies where each node has a folder of its own; choose a"
            " path outside /run, /var/lib and /var/log"
        )


def _check_node_name(name: str) -> None:
    if name in _RESERVED_NAMES or not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?", name):
        raise BedError(
            f"node name {name!r} cannot be used: lower-case letters, digits and hyphens, at most"
            f" 42, none of {', '.join(sorted(_RESERVED_NAMES))}"
        )


def write(settings: BedSettings) -> None:
    """Keep the settings in the state folder, for later commands on the same bed."""
    file = settings.state / "bed.json"
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(asdict(settings), default=str, indent=1))
    unfinished.rename(file)


def read(state: Path) -> BedSettings:
    """The settings of the bed in `state`.

    Raises:
        BedError: there is no bed.
    """
    try:
        told = json.loads((state / "bed.json").read_text())
    except FileNotFoundError:
        raise BedError(f"no bed in {state}; start one with `up` (or name its --state)") from None
    nodes = tuple(
        NodeSettings(**node | {"cards": tuple(Card(**card) for card in node["cards"])})
        for node in told["nodes"]
    )
    return BedSettings(**told | {"state": Path(told["state"]), "nodes": nodes})
