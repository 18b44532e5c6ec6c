"""The agent dies in the middle of its work, under a real kubelet and a real API server."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from tests.cluster.bed import Bed
from tests.cluster.node import Node
from tests.cluster.waiting import wait_until
from tests.component.node_agent import doomed_agent
from tests.component.node_agent.agents import Moment
from tests.e2e.workloads import (
    DRIVER,
    applied,
    claim,
    container,
    memory_mib,
    pod,
    slices,
    wait_for_pod,
    wait_for_slice,
)

NODE = "edge-2"
TIMEOUT_S = 60.0


@contextlib.contextmanager
def registering(node: Node) -> Iterator[None]:
    """An agent that the block starts is known to the kubelet in the end."""
    before = node.log("agent").stat().st_size
    yield
    wait_until(
        "the agent has registered",
        lambda: b'"event":"kubelet.registered"' in node.log("agent").read_bytes()[before:],
        TIMEOUT_S,
    )


def start_doomed(node: Node, moment: Moment) -> None:
    """An agent that kills itself at a moment, in the place of the one that runs."""
    node.stop("agent")
    program = (sys.executable, doomed_agent.__file__)
    node.start_agent_by(program, moment.environment())


def wait_for_death(node: Node) -> None:
    """Until the agent is gone."""
    wait_until("the agent has died", lambda: node.pid("agent") is None, TIMEOUT_S)


def leftovers(node: Node, uid: str) -> list[str]:
    """Everything of a claim on the node."""
    roots = ("/run/casaba/claims", "/var/run/cdi", f"/var/lib/kubelet/plugins/{DRIVER}/claims")
    found = (path for root in roots for path in node.path(root).glob(f"*{uid}*"))
    return [str(path) for path in found]


def test_killed_in_a_prepare(bed: Bed) -> None:
    node = bed.node(NODE)
    wait_for_slice(bed, NODE)
    with registering(node):
        start_doomed(node, Moment(event="os.rename", path="^/run/casaba/claims/.*/policy$"))
    objects = (
        claim("crash", ("gpu", "2Gi", 10)),
        pod("crash", ["crash"], [container("c", "crash")], node=NODE),
    )
    try:
        with applied(bed, *objects):
            wait_for_death(node)
            path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/crash"
            uid = (bed.api.object(path) or {})["metadata"]["uid"]
            assert leftovers(node, uid) != []
            with registering(node):
                node.start("agent")
            # A kubelet tries again after 60 to 90 s, or as soon as the pod changes.
            bed.kubectl("annotate", "pod", "crash", "tests.casaba.dev/again=now")
            wait_for_pod(bed, "crash")
            assert memory_mib(bed, "crash") == 2 * 1024
            wait_for_slice(bed, NODE)
        assert leftovers(node, uid) == []
    finally:
        node.restart("agent")


def test_killed_in_a_publish(bed: Bed) -> None:
    node = bed.node(NODE)
    wait_for_slice(bed, NODE)
    (before,) = slices(bed, NODE)
    node.stop("agent")
    bed.kubectl("delete", "resourceslice", before["metadata"]["name"])
    start_doomed(node, Moment(event="log", path="^slice.published$"))
    try:
        wait_for_death(node)
        (stored,) = slices(bed, NODE)
        with registering(node):
            node.start("agent")
        (after,) = slices(bed, NODE)
        assert after["metadata"]["uid"] == stored["metadata"]["uid"]
        assert after["spec"] == before["spec"]
    finally:
        node.restart("agent")
