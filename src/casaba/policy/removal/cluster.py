"""The next step of an uninstall, from what there is in the cluster."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from casaba.policy.removal.workloads import DaemonPod, DaemonSet

Part = Literal["agent", "cleaner"]


@dataclass(frozen=True, kw_only=True)
class ClusterSeen:
    """Both DaemonSets, None where there is none, and the pods that were made by one."""

    agent: DaemonSet | None = None
    agent_pods: tuple[DaemonPod, ...] = ()
    cleaner: DaemonSet | None = None
    cleaner_pods: tuple[DaemonPod, ...] = ()
    silent_nodes: frozenset[str] = frozenset()
    """Nodes whose kubelet does not answer."""

    def answering(self, pods: Iterable[DaemonPod]) -> tuple[DaemonPod, ...]:
        """Those that are worth waiting for."""
        return tuple(pod for pod in pods if pod.spec.node_name not in self.silent_nodes)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Silent nodes that have a pod of either, in order."""
        nodes = {pod.spec.node_name for pod in (*self.agent_pods, *self.cleaner_pods)}
        return tuple(sorted(nodes & self.silent_nodes))


@dataclass(frozen=True, kw_only=True)
class Delete:
    """Delete a DaemonSet, this one and none that has its name by then."""

    part: Part
    uid: str


@dataclass(frozen=True, kw_only=True)
class AwaitGone:
    """Wait for a DaemonSet and its pods to be gone."""

    part: Part
    waiting: tuple[str, ...]
    """For whom and why, one text for each."""


@dataclass(frozen=True, kw_only=True)
class CreateCleaner:
    """Create the cleaner."""


@dataclass(frozen=True, kw_only=True)
class AwaitCleaned:
    """Wait for the cleaner's pods to be ready."""

    waiting: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Cleaned:
    """Every node that answers is clean; what is left to do is to delete the cleaner."""

    silent: tuple[str, ...] = ()
    """Nodes that don't answer, and may not be clean."""


Step = Delete | AwaitGone | CreateCleaner | AwaitCleaned | Cleaned


def next_step(seen: ClusterSeen) -> Step:
    """What to do now; see the package for the order."""
    cleaners = seen.answering(seen.cleaner_pods)
    if seen.agent is not None or seen.answering(seen.agent_pods):
        return _end_of_agents(seen)
    if seen.cleaner is None and not cleaners:
        return CreateCleaner()
    if seen.cleaner is None or seen.cleaner.is_going:
        return _gone("cleaner", seen.cleaner, cleaners)
    if _is_done(seen.cleaner, seen):
        return Cleaned(silent=seen.left_out)
    return AwaitCleaned(waiting=_not_ready(seen.cleaner, cleaners))


def last_step(seen: ClusterSeen) -> Step:
    """What to do once every node is clean: nothing of the cleaner may stay."""
    if seen.cleaner is not None and not seen.cleaner.is_going:
        return Delete(part="cleaner", uid=seen.cleaner.metadata.uid)
    cleaners = seen.answering(seen.cleaner_pods)
    if seen.cleaner is not None or cleaners:
        return _gone("cleaner", seen.cleaner, cleaners)
    return Cleaned(silent=seen.left_out)


def _is_done(cleaner: DaemonSet, seen: ClusterSeen) -> bool:
    """Whether each node that it wants has a pod, which is ready where the node answers."""
    answering = seen.answering(seen.cleaner_pods)
    nodes = {pod.spec.node_name for pod in seen.cleaner_pods}
    return (
        cleaner.is_observed
        and len(nodes) >= cleaner.status.desired_number_scheduled
        and all(pod.is_ready and not pod.is_going for pod in answering)
    )


def _end_of_agents(seen: ClusterSeen) -> Step:
    if seen.cleaner is not None and not seen.cleaner.is_going:
        return Delete(part="cleaner", uid=seen.cleaner.metadata.uid)
    if seen.agent is not None and not seen.agent.is_going:
        return Delete(part="agent", uid=seen.agent.metadata.uid)
    return _gone("agent", seen.agent, seen.answering(seen.agent_pods))


def _gone(part: Part, daemon_set: DaemonSet | None, pods: Iterable[DaemonPod]) -> AwaitGone:
    waiting = tuple(_stays(pod) for pod in pods)
    if not waiting and daemon_set is not None:
        waiting = (f"DaemonSet {daemon_set.metadata.name}: {_finalizers(daemon_set)}",)
    return AwaitGone(part=part, waiting=waiting)


def _stays(pod: DaemonPod) -> str:
    since = pod.metadata.deletion_timestamp
    if since is None:
        return f"{pod.where}: nobody has deleted its pod yet; is kube-controller-manager running?"
    return f"{pod.where}: its pod is being deleted since {since}; is the node up?"


def _finalizers(daemon_set: DaemonSet) -> str:
    names = ", ".join(daemon_set.metadata.finalizers)
    return f"is kept by its finalizers {names}" if names else "is being deleted"


def _not_ready(cleaner: DaemonSet, pods: Iterable[DaemonPod]) -> tuple[str, ...]:
    """Which nodes are not clean yet and why."""
    told = tuple(f"{pod.where}: {pod.why_not_ready}" for pod in pods if not pod.is_ready)
    if told:
        return told
    status = cleaner.status
    if not cleaner.is_observed:
        return ("nobody has looked at the cleaner yet; is kube-controller-manager running?",)
    return (f"{status.number_ready} of {status.desired_number_scheduled} nodes are clean",)
