"""The flags of `casaba doctor`, and the settings that they describe."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from casaba.errors import InvalidInput
from casaba.settings.conversion import ConversionSettings
from casaba.settings.doctor import DoctorSettings, Names
from casaba.settings.host_paths import HostPaths
from casaba.settings.uninstall import HelmRelease

THIS = "."
"""What `--node` means without a name; no node is called so."""

_Switch = Annotated[bool, Parameter(negative=())]
_Several = Annotated[tuple[str, ...], Parameter(negative=())]
_defaults = DoctorSettings()
_conversion = ConversionSettings()
_paths = HostPaths()
_release = HelmRelease()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked, and how the answer is to look."""

    node: str | None = None
    """Without a name: look at this machine itself. With one: only at this node of the cluster, and
    at this machine if it is that node."""

    preinstall: _Switch = False
    """Only what a cluster must have before casaba is installed."""

    preuninstall: _Switch = False
    """Only whether pods hold cards, which keeps casaba from being removed."""

    force: _Switch = False
    """With --preuninstall: pods that hold cards are only told."""

    release: str = _release.name
    """With --preuninstall: what Helm calls the release, for what people are told."""

    revision: str = _release.revision
    """With --preuninstall: the release's revision, as helm history counts them."""

    json: _Switch = False
    """One JSON object instead of a table."""

    def check(self) -> None:
        """Raises InvalidInput for what can't be asked together."""
        if self.preinstall and self.preuninstall:
            raise InvalidInput("--preinstall and --preuninstall: give one of them")
        if self.force and not self.preuninstall:
            raise InvalidInput("--force: it belongs to --preuninstall")
        if (self.preinstall or self.preuninstall) and self.node is not None:
            raise InvalidInput("--node: an installation concerns the whole cluster; leave it out")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ClusterFlags:
    """The cluster, and what things are called in it."""

    kubeconfig: Path | None = None
    """How to reach the API server; as kubectl finds it if not given."""

    namespace: str | None = None
    """Of the release; that of its pods if not given."""

    node_label: _Several = tuple("=".join(pair) for pair in _defaults.names.node_labels)
    """Label and value of the nodes whose cards are served; given again: a node has all of them."""

    resource_name: str = _conversion.count_resource
    """The classic resource for cards, which the webhook converts."""

    resource_mem: str = _conversion.memory_resource
    """That for memory of each card."""

    resource_mem_percentage: str = _conversion.percentage_resource
    """That for memory in percent."""

    resource_cores: str = _conversion.cores_resource
    """That for compute time."""

    resource_priority: str = _conversion.priority_resource
    """That for the priority."""

    trial_namespace: str = _defaults.trial_namespace
    """Where a classic pod is tried, without being stored."""

    metrics_restricted: _Switch = False
    """A NetworkPolicy lets only some ask for metrics: agents that give no answer are no fault."""

    limit: float = _defaults.look_s
    """Seconds for each observation."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class HostFlags:
    """Where things are on this machine."""

    driver_root: Path | None = None
    """Root of the driver's files; the first usual one that has them if not given."""

    host_root: Path = _defaults.host_root
    """Where the host's own files are seen."""

    kubelet_dir: Path = _paths.kubelet_dir
    """The kubelet's --root-dir."""

    cdi_dir: Path = _paths.cdi_dir
    """CDI specs."""

    run_dir: Path = _paths.run_dir
    """The agent's run folder, with its socket."""

    state_dir: Path = _paths.state_dir
    """The agent's state folder, with the guards."""

    containerd_config: Path = _defaults.containerd_config
    """containerd's configuration."""


def settings_from(asked: Question, cluster: ClusterFlags, host: HostFlags) -> DoctorSettings:
    """The settings that the flags describe; raises InvalidInput."""
    if not 0 < cluster.limit < float("inf"):
        raise InvalidInput(f"--limit {cluster.limit:g}: give more than 0 seconds")
    return DoctorSettings(
        kubeconfig=cluster.kubeconfig,
        names=_names(cluster),
        release=HelmRelease(
            name=asked.release,
            revision=asked.revision,
            namespace=cluster.namespace or _release.namespace,
        ),
        node=None if asked.node == THIS else asked.node,
        trial_namespace=cluster.trial_namespace,
        metrics_restricted=cluster.metrics_restricted,
        look_s=cluster.limit,
        paths=HostPaths(
            run_dir=host.run_dir,
            state_dir=host.state_dir,
            kubelet_dir=host.kubelet_dir,
            cdi_dir=host.cdi_dir,
        ),
        driver_root=host.driver_root,
        host_root=host.host_root,
        containerd_config=host.containerd_config,
    )


def _names(cluster: ClusterFlags) -> Names:
    return Names(
        node_labels=tuple(dict.fromkeys(map(_label, cluster.node_label))),
        namespace=cluster.namespace,
        resource=cluster.resource_name,
        amounts=(
            cluster.resource_mem,
            cluster.resource_mem_percentage,
            cluster.resource_cores,
            cluster.resource_priority,
        ),
    )


def _label(written: str) -> tuple[str, str]:
    key, equals, value = written.partition("=")
    if not key or not equals:
        raise InvalidInput(f"--node-label {written}: write it as KEY=VALUE, such as gpu=on")
    return key, value
