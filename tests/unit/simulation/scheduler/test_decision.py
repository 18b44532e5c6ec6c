"""One decision on one view of a cluster."""

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec

from casaba.kube import ObjectKey
from casaba.simulation.scheduler.decision import (
    ClusterView,
    Decision,
    Failed,
    NotReady,
    Placed,
    Unschedulable,
    decide,
)
from casaba.simulation.scheduler.news import News
from casaba.simulation.workloads.objects import Node, Pod
from casaba.wire.kubernetes import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice

DRIVER = "gpu.test"


def node(name: str) -> Node:
    body = {"metadata": {"name": name}, "status": {"allocatable": {"pods": "10"}}}
    return msgspec.convert(body, Node)


def pod(*claims: str, uid: str = "1", **spec: Any) -> Pod:
    entries = [{"name": name, "resourceClaimName": name} for name in claims]
    spec = {"resourceClaims": entries, **spec}
    metadata = {"name": f"pod-{uid}", "namespace": "default", "uid": uid}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Pod)


def claim(name: str, *users: str, on: str = "", memory: str = "6Gi") -> ResourceClaim:
    exactly = {"deviceClassName": DRIVER, "capacity": {"requests": {"memory": memory}}}
    status: dict[str, Any] = {"reservedFor": [user(uid) for uid in users]}
    if on:
        result = {"request": "gpu", "driver": DRIVER, "pool": on, "device": "gpu"}
        result |= {"shareID": name, "consumedCapacity": {"memory": memory}}  # type: ignore[dict-item]
        here = {"key": "metadata.name", "operator": "In", "values": [on]}
        selector = {"nodeSelectorTerms": [{"matchFields": [here]}]}
        status["allocation"] = {"devices": {"results": [result]}, "nodeSelector": selector}
    body = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        "status": status,
    }
    return msgspec.convert(body, ResourceClaim)


def user(uid: str) -> dict[str, str]:
    return {"resource": "pods", "name": f"pod-{uid}", "uid": uid}


def slice_of(name: str) -> ResourceSlice:
    policy = {"default": "10Gi", "validRange": {"min": "1Gi"}}
    capacity = {"memory": {"value": "10Gi", "requestPolicy": policy}}
    device = {"name": "gpu", "allowMultipleAllocations": True, "capacity": capacity}
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": [device]}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def view(
    *claims: ResourceClaim,
    nodes: Sequence[str] = ("a", "b"),
    in_flight: Sequence[ResourceClaim] = (),
    pods: dict[str, list[Pod]] | None = None,
    classes: Sequence[str] = (DRIVER,),
) -> ClusterView:
    return ClusterView(
        nodes={name: node(name) for name in nodes},
        pods=pods or {},
        claims={ObjectKey("default", one.metadata.name): one for one in claims},
        in_flight={one.metadata.uid: one for one in in_flight},
        slices=[slice_of(name) for name in nodes],
        classes={
            name: msgspec.convert({"metadata": {"name": name}}, DeviceClass) for name in classes
        },
    )


def decided(pod: Pod, cluster: ClusterView) -> Decision:
    numbers = itertools.count()
    return decide(pod, cluster, new_share_id=lambda: f"share-{next(numbers)}")


def allocation(placed: Decision) -> AllocationResult:
    assert isinstance(placed, Placed)
    ((_, result),) = placed.allocations
    return result


def test_the_emptier_node_is_taken_then_the_first_by_name() -> None:
    assert decided(pod(), view()) == Placed(node="a")
    assert decided(pod(), view(pods={"a": [pod(uid="2")]})) == Placed(node="b")


def test_a_claim_is_allocated_on_the_node_that_is_taken() -> None:
    (result,) = allocation(decided(pod("c"), view(claim("c")))).devices.results
    assert (result.pool, result.consumed_capacity) == ("a", {"memory": "6Gi"})


def test_what_is_in_flight_is_taken() -> None:
    flying = claim("other", on="a")
    placed = decided(pod("c"), view(claim("c"), in_flight=[flying]))
    assert allocation(placed).devices.results[0].pool == "b"
    both = [flying, claim("another", on="b")]
    refused = decided(pod("c"), view(claim("c"), in_flight=both))
    assert isinstance(refused, Unschedulable)
    assert News.CLAIM_FREED in refused.cures
    assert any("memory" in text for text in refused.why)


def test_a_claim_that_is_being_allocated_for_another_pod_is_waited_for() -> None:
    refused = decided(pod("c"), view(claim("c"), in_flight=[claim("c", on="a")]))
    assert isinstance(refused, Unschedulable)
    assert "resource claim default/c is in the process of being allocated." in refused.message
    assert News.CLAIM in refused.cures


def test_an_allocated_claim_leads_to_its_node_and_is_reserved() -> None:
    shared = claim("c", "2", on="b")
    assert decided(pod("c"), view(shared)) == Placed(node="b", reservations=(shared,))
    assert decided(pod("c"), view(claim("c", "1", on="b"))) == Placed(node="b")


def test_claims_on_two_nodes_fit_nowhere_and_an_unused_one_is_given_back() -> None:
    used, unused = claim("c", "2", on="a"), claim("d", on="b")
    refused = decided(pod("c", "d"), view(used, unused))
    assert isinstance(refused, Unschedulable)
    assert refused.deallocate == unused
    assert "2 resourceclaim not available on the node. deallocation of" in refused.message


def test_a_claim_with_256_users_is_in_use() -> None:
    full = claim("c", *(f"u{number}" for number in range(256)), on="a")
    refused = decided(pod("c"), view(full))
    assert isinstance(refused, Unschedulable)
    assert "resourceclaim in use." in refused.message


def test_a_claim_that_is_not_there_is_waited_for() -> None:
    assert decided(pod("c"), view()) == NotReady(message='resourceclaim "c" not found')
    entries = [{"name": "c", "resourceClaimTemplateName": "t"}]
    assert decided(pod(resourceClaims=entries), view()) == NotReady(
        message='pod "default/pod-1": ResourceClaim not created yet', is_usual=True
    )


def test_what_is_no_quantity_fails_this_pod_only() -> None:
    assert isinstance(decided(pod("c"), view(claim("c", memory="lots"))), Failed)


def test_without_nodes_there_is_nothing_to_say_about_them() -> None:
    assert decided(pod(), view(nodes=())) == Unschedulable(
        message="no nodes available to schedule pods", cures=frozenset({News.NODE})
    )
