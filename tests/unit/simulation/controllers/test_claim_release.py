"""What becomes of claims when their users leave."""

from typing import Any

import msgspec

from casaba.simulation.controllers.claim_release import Release, plan_release
from casaba.simulation.workloads.claim_names import FINALIZER
from casaba.simulation.workloads.objects import Pod
from casaba.wire.kubernetes import ResourceClaim


def pod(uid: str = "1", *, phase: str = "Running", node: str = "a", leaving: bool = False) -> Pod:
    metadata: dict[str, Any] = {"name": f"pod-{uid}", "namespace": "default", "uid": uid}
    if leaving:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    body = {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}
    return msgspec.convert(body, Pod)


def claim(
    *users: str, allocated: bool = True, owner: str = "", node_user: bool = False, **metadata: Any
) -> ResourceClaim:
    reserved = [{"resource": "pods", "name": f"pod-{uid}", "uid": uid} for uid in users]
    if node_user:
        reserved.append({"resource": "nodes", "name": "a", "uid": "node"})
    if owner:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": f"pod-{owner}", "uid": owner}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    body = {
        "metadata": {"name": "c", "namespace": "default", "finalizers": [FINALIZER], **metadata},
        "status": {"reservedFor": reserved, **({"allocation": {}} if allocated else {})},
    }
    return msgspec.convert(body, ResourceClaim)


def test_a_claim_of_running_pods_stays() -> None:
    used = claim("1", "2")
    assert plan_release(used, {"1": pod("1"), "2": pod("2")}, None) == Release()


def test_one_of_two_users_leaves() -> None:
    plan = plan_release(claim("1", "2"), {"1": None, "2": pod("2")}, None)
    assert plan.keep_users is not None
    assert [user.uid for user in plan.keep_users] == ["2"]
    assert not plan.deallocate
    assert not plan.remove_finalizer


def test_the_last_user_frees_the_claim() -> None:
    for last in (None, pod(phase="Succeeded"), pod(phase="Failed"), pod(node="", leaving=True)):
        assert plan_release(claim("1"), {"1": last}, None) == Release(
            keep_users=(), deallocate=True, remove_finalizer=True
        )


def test_a_pod_that_is_still_ending_keeps_its_claim() -> None:
    assert plan_release(claim("1"), {"1": pod(leaving=True)}, None) == Release()


def test_users_that_are_no_pods_hold_the_claim() -> None:
    plan = plan_release(claim("1", node_user=True), {"1": None}, None)
    assert plan.keep_users is not None
    assert [user.resource for user in plan.keep_users] == ["nodes"]
    assert not plan.deallocate


def test_an_unused_claim_is_freed_only_when_it_is_deleted() -> None:
    assert plan_release(claim(), {}, None) == Release()
    leaving = claim(deletionTimestamp="2030-01-01T00:00:00Z")
    assert plan_release(leaving, {}, None) == Release(deallocate=True, remove_finalizer=True)
    unallocated = claim(allocated=False, deletionTimestamp="2030-01-01T00:00:00Z")
    assert plan_release(unallocated, {}, None) == Release(remove_finalizer=True)


def test_a_generated_claim_goes_with_its_pod() -> None:
    done = pod(phase="Succeeded")
    assert plan_release(claim("1", owner="1"), {"1": done}, done).delete
    assert plan_release(claim(owner="1"), {}, pod("2")).delete
    assert not plan_release(claim("1", owner="1"), {"1": pod()}, pod()).delete
    assert not plan_release(claim(owner="1"), {}, None).delete
