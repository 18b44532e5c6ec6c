"""For whom an uninstall waits, and why, in words."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from casaba.policy.removal import (
    AwaitCleaned,
    AwaitGone,
    Cleaned,
    ClusterSeen,
    CreateCleaner,
    Delete,
    NodeState,
    last_step,
    next_step,
)
from tests.unit.policy.removal.release import AGENT, CLEANER, READY, daemon_set, pod

DELETED = "2026-12-01T11:00:00Z"


def waiting_for(status: dict[str, Any], node: str = "gpu-1") -> str:
    seen = ClusterSeen(
        cleaner=daemon_set(CLEANER, desired=1), cleaner_pods=(pod(CLEANER, node, status),)
    )
    step = next_step(seen)
    assert isinstance(step, AwaitCleaned)
    (told,) = step.waiting
    return told


def clean(**state: Any) -> dict[str, Any]:
    return {"initContainerStatuses": [{"name": "clean", **state}]}


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({}, "node gpu-1: Pending, its kubelet says nothing more; is the node up?"),
        (
            clean(
                state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
                lastState={
                    "terminated": {
                        "exitCode": 1,
                        "reason": "Error",
                        "message": "casaba node-clean: nothing was\n removed",
                    }
                },
            ),
            "node gpu-1: clean ended with 1: casaba node-clean: nothing was removed",
        ),
        (
            clean(state={"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}),
            "node gpu-1: clean waits: ImagePullBackOff no such image",
        ),
        (
            clean(state={"waiting": {"reason": "PodInitializing"}}),
            "node gpu-1: Pending, its kubelet says nothing more; is the node up?",
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on disk."},
            "node gpu-1: Evicted: The node was low on disk.",
        ),
    ],
)
def test_a_node_that_is_not_clean(status: dict[str, Any], told: str) -> None:
    assert waiting_for(status) == told


def test_a_pod_without_a_node() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/2 nodes are available",
    }
    told = waiting_for({"phase": "Pending", "conditions": [condition]}, node="")
    assert told == "cleaner-: Unschedulable: 0/2 nodes are available"


def test_nobody_works_for_the_cleaner() -> None:
    step = next_step(ClusterSeen(cleaner=daemon_set(CLEANER, observed=0)))
    assert isinstance(step, AwaitCleaned)
    assert "kube-controller-manager" in step.waiting[0]


def test_pods_that_are_yet_to_come() -> None:
    step = next_step(ClusterSeen(cleaner=daemon_set(CLEANER, desired=3, ready=1)))
    assert step == AwaitCleaned(waiting=("1 of 3 nodes are clean",))


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"deletionTimestamp": DELETED}, f"being deleted since {DELETED}; is the node up?"),
        ({}, "nobody has deleted its pod yet; is kube-controller-manager running?"),
    ],
)
def test_an_agent_that_stays(metadata: dict[str, Any], told: str) -> None:
    step = next_step(ClusterSeen(agent_pods=(pod(AGENT, "gpu-1", **metadata),)))
    assert isinstance(step, AwaitGone)
    assert step.waiting[0].startswith("node gpu-1: ")
    assert step.waiting[0].endswith(told)


def test_a_set_that_is_kept() -> None:
    agent = daemon_set(AGENT, deletionTimestamp=DELETED, finalizers=["example.com/keep"])
    step = next_step(ClusterSeen(agent=agent))
    assert isinstance(step, AwaitGone)
    assert "example.com/keep" in step.waiting[0]


def test_nodes_that_do_not_answer_are_left_out() -> None:
    cleaner = daemon_set(CLEANER, desired=2, ready=1)
    pods = (pod(CLEANER, "a", READY), pod(CLEANER, "b"))
    silent = frozenset({"b", "elsewhere"})
    agents = (pod(AGENT, "b", deletionTimestamp=DELETED),)
    seen = ClusterSeen(agent_pods=agents, cleaner=cleaner, cleaner_pods=pods, silent_nodes=silent)
    assert next_step(seen) == Cleaned(silent=("b",))
    assert next_step(replace(seen, cleaner_pods=pods[:1])) == AwaitCleaned(
        waiting=("1 of 2 nodes are clean",)
    )
    assert next_step(replace(seen, cleaner_pods=(), cleaner=None)) == CreateCleaner()
    assert last_step(replace(seen, cleaner=None, cleaner_pods=pods[1:])) == Cleaned(silent=("b",))
    back = replace(seen, silent_nodes=frozenset())
    assert next_step(back) == Delete(part="cleaner", uid="cleaner-1")


@pytest.mark.parametrize(
    ("conditions", "is_silent"),
    [
        ([{"type": "Ready", "status": "True"}], False),
        ([{"type": "Ready", "status": "Unknown"}], True),
        ([{"type": "Ready", "status": "False"}, {"type": "DiskPressure", "status": "True"}], True),
        ([], True),
    ],
)
def test_a_node_answers_while_it_is_ready(
    conditions: list[dict[str, str]], is_silent: bool
) -> None:
    body = {"metadata": {"name": "a"}, "status": {"conditions": conditions}}
    assert msgspec.convert(body, NodeState).is_silent == is_silent


def test_a_cluster_without_labelled_nodes_is_clean() -> None:
    assert next_step(ClusterSeen()) == CreateCleaner()
    assert next_step(ClusterSeen(cleaner=daemon_set(CLEANER))) == Cleaned()


def test_a_cleaner_beside_an_agent_is_of_another_time() -> None:
    agent, cleaner = daemon_set(AGENT), daemon_set(CLEANER)
    step = next_step(ClusterSeen(agent=agent, cleaner=cleaner))
    assert step == Delete(part="cleaner", uid="cleaner-1")
    assert next_step(ClusterSeen(agent=agent)) == Delete(part="agent", uid="agent-1")


def test_pods_of_others_are_not_waited_for() -> None:
    assert pod(AGENT, "a").belongs_to(AGENT)
    assert not pod(AGENT, "a").belongs_to(CLEANER)
    assert not pod(AGENT, "a", ownerReferences=[]).belongs_to(AGENT)
