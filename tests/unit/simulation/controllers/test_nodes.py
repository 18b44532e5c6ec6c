"""Signs of life, taints, evictions and orphaned pods."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from casaba.simulation.controllers.eviction import stays_until
from casaba.simulation.controllers.node_health import (
    first_heartbeat,
    has_wanted_taints,
    unknown_conditions,
    wanted_taints,
    with_wanted_taints,
)
from casaba.simulation.controllers.pod_collection import Fate, fate
from casaba.simulation.workloads.objects import Node, Pod, Taint, Toleration
from casaba.simulation.workloads.times import spelt
from casaba.wire.kubernetes import Lease

NOW = datetime(2030, 1, 1, tzinfo=UTC)
UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"


def node(ready: str = "True", beat: str = "1", **spec: Any) -> Node:
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": beat}
    body = {
        "metadata": {"name": "a", "uid": "1", "creationTimestamp": "2029"},
        "spec": spec,
        "status": {"conditions": [condition]},
    }
    return msgspec.convert(body, Node)


def lease(renewed: str) -> Lease:
    return msgspec.convert({"metadata": {"name": "a"}, "spec": {"renewTime": renewed}}, Lease)


def test_a_lease_or_a_status_that_moves_is_a_sign_of_life() -> None:
    first = first_heartbeat(node(), lease("1"), 10)
    assert first.next(node(), lease("1"), 20).seen_at_s == 10
    assert first.next(node(), lease("2"), 20).seen_at_s == 20
    assert first.next(node(beat="2"), lease("1"), 20).seen_at_s == 20
    assert first.next(node(), None, 20).seen_at_s == 20


def test_a_silent_node_is_unknown_in_all_that_its_kubelet_tells() -> None:
    conditions = unknown_conditions(node(), "now")
    assert {c["type"]: c["reason"] for c in conditions} == {
        "Ready": "NodeStatusUnknown",
        "MemoryPressure": "NodeStatusNeverUpdated",
        "DiskPressure": "NodeStatusNeverUpdated",
        "PIDPressure": "NodeStatusNeverUpdated",
    }
    assert {c["status"] for c in conditions} == {"Unknown"}


@pytest.mark.parametrize(
    ("ready", "keys"), [("True", set()), ("False", {NOT_READY}), ("Unknown", {UNREACHABLE})]
)
def test_taints_follow_the_ready_condition(ready: str, keys: set[str]) -> None:
    effects = ("NoSchedule", "NoExecute")
    assert wanted_taints(node(ready)) == {(key, effect) for key in keys for effect in effects}


def test_a_cordon_is_a_taint() -> None:
    assert wanted_taints(node(unschedulable=True)) == {
        ("node.kubernetes.io/unschedulable", "NoSchedule")
    }


def test_taints_of_others_are_left_alone_and_ours_are_made_right() -> None:
    read = [
        {"key": "mine", "effect": "NoSchedule", "value": "x"},
        {"key": NOT_READY, "effect": "NoExecute"},
        {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": "before"},
    ]
    assert with_wanted_taints(read, wanted_taints(node("Unknown")), "now") == [
        read[0],
        read[2],
        {"key": UNREACHABLE, "effect": "NoSchedule", "timeAdded": "now"},
    ]
    assert has_wanted_taints(node(taints=[read[0]]))
    assert not has_wanted_taints(node(taints=[read[1]]))


def taint(key: str = "k", *, effect: str = "NoExecute", added: datetime = NOW) -> Taint:
    return Taint(key=key, effect=effect, time_added=spelt(added))


def tolerating(key: str = "k", *, seconds: int | None = None) -> Toleration:
    return Toleration(key=key, operator="Exists", toleration_seconds=seconds)


def test_pods_leave_at_once_after_a_while_or_never() -> None:
    assert stays_until([taint()], [], NOW) == NOW
    assert stays_until([taint()], [tolerating()], NOW) is None
    assert stays_until([taint(effect="NoSchedule")], [], NOW) is None
    later = NOW + timedelta(seconds=30)
    assert stays_until([taint()], [tolerating(seconds=30)], NOW) == later
    assert stays_until([taint()], [tolerating(seconds=-5)], NOW) == NOW
    both = [tolerating(seconds=30), tolerating("other", seconds=5)]
    assert stays_until([taint(), taint("other")], both, NOW) == NOW + timedelta(seconds=5)
    assert stays_until([taint(), taint("third")], both, NOW) == NOW


def pod(node_name: str = "a", *, leaving: bool = False) -> Pod:
    metadata = {"name": "p", "deletionTimestamp": "2030" if leaving else None}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": node_name}}, Pod)


def test_pods_that_no_kubelet_will_end_are_removed() -> None:
    assert fate(pod(), node()) is Fate.STAYS
    assert fate(pod(leaving=True), node("Unknown")) is Fate.STAYS
    assert fate(pod(), None) is Fate.GOES_IF_NODE_IS_GONE
    assert fate(pod(""), None) is Fate.STAYS
    assert fate(pod("", leaving=True), None) is Fate.GOES
    given_up = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    assert fate(pod(leaving=True), node("Unknown", taints=[given_up])) is Fate.GOES
