"""The bed as tests and the command line use it."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import (
    agent,
    build,
    cleanup,
    control_plane,
    helm,
    images,
    mounts,
    network,
    packages,
    processes,
    settings,
)
from tests.cluster.api import ApiServer, is_ready
from tests.cluster.build import Programs
from tests.cluster.errors import BedError
from tests.cluster.node import DAEMONS, Node
from tests.cluster.settings import BedSettings, Card, NodeSettings
from tests.cluster.waiting import wait_until

_API_TIMEOUT_S = 60.0
_READY_TIMEOUT_S = 60.0
_CARDS_TIMEOUT_S = 30.0
_PLUGIN_TIMEOUT_S = 60.0
_CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_GPU_LABELS = {"gpu": "on", "apps.openyurt.io/nodepool": "worker"}
_PLAIN_LABELS = {"apps.openyurt.io/nodepool": "worker"}


@dataclasses.dataclass(frozen=True)
class Bed:
    """A running bed."""

    settings: BedSettings
    programs: Programs

    @classmethod
    def open(cls, state: Path) -> Bed:
        """The bed that was started in `state`.

        Raises:
            BedError: there is none.
        """
        return cls(settings.read(state), build.build(build.OF_A_BED))

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; it works outside all namespaces."""
        return self.settings.kubeconfig

    @property
    def nodes(self) -> list[Node]:
        return [Node(self.settings, node, self.programs) for node in self.settings.nodes]

    @property
    def api(self) -> ApiServer:
        return ApiServer(self.kubeconfig)

    def node(self, name: str) -> Node:
        """
        Raises:
            BedError: no node has this name.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        have = ", ".join(node.name for node in self.nodes)
        raise BedError(f"no node is called {name!r}; there are: {have}")

    def kubectl(
        self,
        *arguments: str,
        stdin: str | None = None,
        check: bool = True,
        timeout_s: float = 60.0,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator.

        Raises:
            BedError: it failed and `check` is set; the message carries what it said.
        """
        done = subprocess.run(
            [*self.kubectl_command(), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        if check and done.returncode:
            raise BedError(f"`kubectl {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done

    def kubectl_command(self) -> list[str]:
        """kubectl with the options that lead to this bed and keep its cache in the bed."""
        return [
            self.programs["kubectl"],
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self.settings.state / 'kubectl-cache'}",
        ]

    def helm(
        self, *arguments: str, check: bool = True, timeout_s: float = 300.0
    ) -> subprocess.CompletedProcess[str]:
        """Run the real helm as the administrator; what it keeps on disk lies in the bed.

        Raises:
            BedError: it failed and `check` is set; the message carries what it said.
        """
        folder = self.settings.state / "helm"
        places = {f"HELM_{kind}_HOME": str(folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}
        done = subprocess.run(
            [str(helm.helm()), f"--kubeconfig={self.kubeconfig}", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env=os.environ | places,
        )
        if check and done.returncode:
            raise BedError(f"`helm {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done

    def replace_control_plane(
        self, flags: Sequence[str] = (), *, api_server: Path | None = None
    ) -> None:
        """API server and scheduler with more flags, or another API server; called with nothing,
        those that the bed was started with.

        What is stored stays; kubelets and controllers find the new ones by themselves.
        """
        other = {"kube-apiserver": api_server} if api_server else {}
        programs = Programs({**self.programs.paths, **other})
        control_plane.replace_api_server_and_scheduler(self.settings, programs, flags)
        _wait_for_api(self)

    @contextmanager
    def device_plugin(self, node: str, resource: str) -> Iterator[None]:
        """A node that offers a device of this resource through a device plugin, for a while."""
        offering = self.node(node)
        offering.start_device_plugin(resource)
        try:
            wait_until(
                f"{node} has {resource}",
                lambda: resource in self._capacity(node),
                _PLUGIN_TIMEOUT_S,
                explain=self.log_tails,
            )
            yield
        finally:
            offering.stop_device_plugin()
            self._forget_resource(node, resource)

    def _capacity(self, node: str) -> dict[str, str]:
        found = self.api.object(f"/api/v1/nodes/{node}") or {"status": {}}
        return dict(found["status"].get("capacity", {}))

    def _forget_resource(self, node: str, resource: str) -> None:
        """The API server's Node keeps what its kubelet no longer tells of."""
        status = {part: {resource: None} for part in ("capacity", "allocatable")}
        gone = json.dumps({"status": status})
        self.kubectl("patch", "node", node, "--subresource=status", "--type=merge", f"-p={gone}")

    def load_images(self, archives: Sequence[Path]) -> None:
        """Put docker-archives into the image store of every node."""
        _each(self.nodes, lambda node: _import_images(node, archives))

    def node_is_ready(self, name: str) -> bool:
        """Whether the API server holds the node for Ready."""
        return is_ready(self.api.object(f"/api/v1/nodes/{name}"))

    def down(self) -> None:
        """Stop everything and leave nothing of it."""
        cleanup.remove_everything(self.settings.name, self.settings.state)

    def log_tails(self, lines: int = 12) -> str:
        """The ends of all logs of all daemons, each under its path."""
        logs = [self.settings.cloud / f"{name}.log" for name in _CONTROL_PLANE]
        logs += [node.log(daemon) for node in self.nodes for daemon in DAEMONS]
        tails = ((log, processes.log_tail(log, lines)) for log in logs)
        return "\n".join(f"--- {log}\n{tail}" for log, tail in tails if tail)


@contextmanager
def in_use(bed_name: str) -> Iterator[None]:
    """Keep other processes from starting or stopping a bed of this name meanwhile.

    Raises:
        BedError: another process has it in use.
    """
    # An abstract address: held as long as the process lives, and no file is left.
    with socket.socket(socket.AF_UNIX) as claim:
        try:
            claim.bind(f"\0casaba-bed-{bed_name}")
        except OSError:
            raise BedError(
                f"another process has bed {bed_name!r} in use; wait for it or choose another name"
            ) from None
        yield


def gpu_node(index: int, name: str, models: Sequence[str] = ("A10",)) -> NodeSettings:
    """A node labelled `gpu=on`. The first card of the first node is the scenario's."""
    cards = tuple(_card(index, name, minor, model) for minor, model in enumerate(models))
    return NodeSettings(name, index, dict(_GPU_LABELS), cards)


def plain_node(index: int, name: str) -> NodeSettings:
    """A node of the same pool without `gpu=on`, driver and cards."""
    return NodeSettings(name, index, dict(_PLAIN_LABELS))


def up(wanted: BedSettings) -> Bed:
    """Start a bed in place of what an earlier run under the same name left.

    Raises:
        BedError: something did not start; everything that did has been removed again.
    """
    cleanup.check_removable(wanted.name, wanted.state)
    settings.check(wanted)
    packages.install_missing()
    programs = build.build(build.OF_A_BED)
    archives = images.archives()
    cleanup.remove_everything(wanted.name, wanted.state)
    try:
        return _start(wanted, programs, archives)
    except BaseException:
        print("starting the bed failed; removing what was started", file=sys.stderr, flush=True)
        cleanup.remove_everything(wanted.name, wanted.state)
        raise


def _start(wanted: BedSettings, programs: Programs, archives: Sequence[Path]) -> Bed:
    with control_plane.open_forward_port() as listener:
        bed = Bed(dataclasses.replace(wanted, api_forward_port=listener.getsockname()[1]), programs)
        _lay_out(bed.settings)
        authority = control_plane.write_identities(bed.settings)
        control_plane.start_forward(bed.settings, listener)
    control_plane.start_storage_and_api(bed.settings, programs)
    for node in bed.nodes:
        node.write_files(authority)
        node.boot()
    _each(bed.nodes, lambda node: _start_runtime(node, archives))
    _wait_for_api(bed)
    control_plane.start_controllers(bed.settings, programs)
    for node in bed.nodes:
        node.start("kubelet")
    _wait_for_nodes(bed)
    if not bed.settings.bare:
        _apply_manifests(bed)
    if bed.settings.agent:
        for node in bed.nodes:
            node.start("agent")
        _wait_for_cards(bed)
    return bed


def _lay_out(wanted: BedSettings) -> None:
    wanted.state.mkdir(parents=True, exist_ok=True)
    settings.write(wanted)  # first: marks the folder as a bed's
    wanted.cloud.mkdir()
    mounts.create_namespace_folder(wanted.namespace_files)
    network.create(wanted)


def _start_runtime(node: Node, archives: Sequence[Path]) -> None:
    node.start("containerd")
    _import_images(node, archives)


def _import_images(node: Node, archives: Sequence[Path]) -> None:
    for archive in archives:
        node.import_image(archive)


def _wait_for_api(bed: Bed) -> None:
    wait_until(
        "the API server is ready",
        lambda: bed.api.get("/readyz")[0] == 200,
        _API_TIMEOUT_S,
        still_worth_it=lambda: control_plane.require_running(
            bed.settings, ("forward", "etcd", "kube-apiserver")
        ),
        explain=bed.log_tails,
    )


def _wait_for_nodes(bed: Bed) -> None:
    """Until all nodes are Ready and pods may be created in the namespace `default`."""

    def ready() -> bool:
        account = bed.api.object("/api/v1/namespaces/default/serviceaccounts/default")
        return account is not None and all(bed.node_is_ready(node.name) for node in bed.nodes)

    def all_running() -> None:
        control_plane.require_running(bed.settings, _CONTROL_PLANE)
        for node in bed.nodes:
            node.require_running("kubelet")

    wait_until(
        "all nodes are Ready",
        ready,
        _READY_TIMEOUT_S,
        still_worth_it=all_running,
        explain=bed.log_tails,
    )


def _wait_for_cards(bed: Bed) -> None:
    """Until every node that is to offer cards does."""
    wanted = {
        node.name for node in bed.nodes if _GPU_LABELS.items() <= node.settings.labels.items()
    }

    def offered() -> bool:
        listed = bed.api.object("/apis/resource.k8s.io/v1/resourceslices") or {"items": []}
        return wanted <= {item["spec"].get("nodeName") for item in listed["items"]}

    def require_agents() -> None:
        for name in wanted:
            bed.node(name).require_running("agent")

    wait_until(
        "the cards are offered",
        offered,
        _CARDS_TIMEOUT_S,
        still_worth_it=require_agents,
        explain=bed.log_tails,
    )


def _apply_manifests(bed: Bed) -> None:
    if agent.MANIFESTS.is_dir() and any(agent.MANIFESTS.glob("*.yaml")):
        bed.kubectl("apply", "--server-side", "-f", str(agent.MANIFESTS))


def _each(nodes: Sequence[Node], action: Callable[[Node], None]) -> None:
    with ThreadPoolExecutor(max(1, len(nodes))) as pool:
        list(pool.map(action, nodes))


def _card(index: int, node_name: str, minor: int, model: str) -> Card:
    if (index, minor) == (1, 0):
        return Card(model)
    made_up = uuid.uuid5(uuid.NAMESPACE_DNS, f"{minor}.{node_name}")
    return Card(model, f"GPU-{made_up}", f"0000:00:{3 + minor:02x}.0")
