"""A release in a small cluster: two DaemonSets, their controller, the garbage collector, nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from casaba.policy.removal import (
    AwaitCleaned,
    AwaitGone,
    Cleaned,
    ClusterSeen,
    CreateCleaner,
    DaemonPod,
    DaemonSet,
    Delete,
    Step,
)

AGENT, CLEANER = "agent", "cleaner"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def pod(owner: str, node: str, status: dict[str, Any] | None = None, **metadata: Any) -> DaemonPod:
    """A pod as its DaemonSet makes it."""
    references = [
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": owner,
            "uid": "u",
            "controller": True,
        }
    ]
    body = {
        "metadata": {"name": f"{owner}-{node}", "ownerReferences": references, **metadata},
        "spec": {"nodeName": node} if node else {},
        "status": status or {},
    }
    return msgspec.convert(body, DaemonPod)


def daemon_set(
    name: str, *, ready: int = 0, desired: int = 0, observed: int = 1, **metadata: Any
) -> DaemonSet:
    """A DaemonSet of generation 1."""
    body = {
        "metadata": {"name": name, "uid": f"{name}-1", "generation": 1, **metadata},
        "status": {
            "observedGeneration": observed,
            "desiredNumberScheduled": desired,
            "numberReady": ready,
        },
    }
    return msgspec.convert(body, DaemonSet)


@dataclass
class Release:
    """What is true, and what `look` shows of it."""

    nodes: tuple[str, ...] = ("a", "b")
    dirty: set[str] = field(default_factory=set)
    agent: str | None = None
    """UID of the DaemonSet, if it is there."""
    agent_pods: set[str] = field(default_factory=set)
    cleaner: str | None = None
    observed: bool = False
    cleaner_pods: dict[str, bool] = field(default_factory=dict)
    """Nodes with a cleaner's pod, and whether it is ready."""
    broken: set[str] = field(default_factory=set)
    """Nodes on which no pod starts or ends."""
    silent: set[str] = field(default_factory=set)
    """Nodes that are not Ready."""
    made: int = 0
    done: list[str] = field(default_factory=list)

    def install(self) -> None:
        """As `helm install` and `helm upgrade` do."""
        if self.agent is None:
            self.made += 1
            self.agent = f"{AGENT}-{self.made}"

    def works(self, node: str) -> None:
        """The controllers and one node's kubelet do what is due."""
        if node in self.silent:
            self._a_pod_for(node)
        elif node not in self.broken:
            self._agents_turn(node)
            self._cleaners_turn(node)
        self.observed = self.cleaner is not None

    def _a_pod_for(self, node: str) -> None:
        """DaemonSets have pods on such nodes too; none of them starts or ends."""
        if self.agent is not None:
            self.agent_pods.add(node)
        if self.cleaner is not None:
            self.cleaner_pods[node] = False

    def _agents_turn(self, node: str) -> None:
        if self.agent is not None:
            self.agent_pods.add(node)
        else:
            self.agent_pods.discard(node)
        if node in self.agent_pods:
            self.dirty.add(node)

    def _cleaners_turn(self, node: str) -> None:
        if self.cleaner is None:
            self.cleaner_pods.pop(node, None)
        elif node not in self.cleaner_pods:
            self.cleaner_pods[node] = False
        elif not self.cleaner_pods[node]:
            self.cleaner_pods[node] = True
            self.dirty.discard(node)

    def seen(self) -> ClusterSeen:
        """As the API server tells it."""
        return ClusterSeen(
            agent=daemon_set(AGENT, uid=self.agent) if self.agent else None,
            agent_pods=tuple(pod(AGENT, node) for node in sorted(self.agent_pods)),
            cleaner=daemon_set(
                CLEANER,
                uid=self.cleaner,
                observed=int(self.observed),
                desired=len(self.nodes) if self.observed else 0,
                ready=sum(self.cleaner_pods.values()),
            )
            if self.cleaner
            else None,
            cleaner_pods=tuple(
                pod(CLEANER, node, READY if ready else None)
                for node, ready in sorted(self.cleaner_pods.items())
            ),
            silent_nodes=frozenset(self.silent),
        )

    def act(self, step: Step) -> None:
        """What the API server does when it is asked for a step."""
        match step:
            case CreateCleaner():
                if self.cleaner is None:
                    self.made += 1
                    self.cleaner, self.observed = f"{CLEANER}-{self.made}", False
                    self.done.append("create cleaner")
            case Delete(part="agent", uid=uid):
                if self.agent == uid:
                    self.agent = None
                    self.done.append("delete agent")
            case Delete(uid=uid):
                if self.cleaner == uid:
                    self.cleaner, self.observed = None, False
                    self.done.append("delete cleaner")
            case AwaitGone() | AwaitCleaned() | Cleaned():
                pass
