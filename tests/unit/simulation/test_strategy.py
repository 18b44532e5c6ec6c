"""Defaults are filled in, and each door changes only its own part of an object."""

import copy
from typing import Any

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.strategy import prepared_for_update
from tests.unit.simulation.api_objects import (
    CLAIMS,
    NAMESPACES,
    NODES,
    PODS,
    SLICES,
    claim,
    created,
    pod,
    resource,
    slice_,
)


def changed(old: Object, **fields: Any) -> Object:
    return {**copy.deepcopy(old), **fields}


def test_a_pod_gets_what_it_leaves_out() -> None:
    new = created(PODS, pod())
    spec, container = new["spec"], new["spec"]["containers"][0]
    assert (spec["restartPolicy"], spec["dnsPolicy"]) == ("Always", "ClusterFirst")
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["schedulerName"] == "default-scheduler"
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["resources"] == {}
    assert new["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert new["metadata"]["generation"] == 1


def test_the_newest_image_is_always_pulled() -> None:
    for image, policy in {
        "image": "Always",
        "image:latest": "Always",
        "host:5000/image": "Always",
        "image:1": "IfNotPresent",
        "image@sha256:abc": "IfNotPresent",
    }.items():
        new = created(PODS, pod(containers=[{"name": "a", "image": image}]))
        assert new["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_limits_are_also_requests() -> None:
    limits = {"cpu": "1", "memory": "1Gi"}
    resources = {"limits": limits, "requests": {"cpu": "500m"}}
    new = created(PODS, pod(containers=[{"name": "a", "image": "i", "resources": resources}]))
    assert new["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert new["status"]["qosClass"] == "Burstable"
    equal = {"name": "a", "image": "i", "resources": {"limits": limits}}
    assert created(PODS, pod(containers=[equal]))["status"]["qosClass"] == "Guaranteed"


def test_the_old_name_of_the_service_account_is_kept_in_step() -> None:
    spec = created(PODS, pod(serviceAccount="me"))["spec"]
    assert (spec["serviceAccount"], spec["serviceAccountName"]) == ("me", "me")


def test_a_request_is_for_one_device() -> None:
    request = created(CLAIMS, claim(tolerations=[{"key": "a"}]))["spec"]["devices"]["requests"][0]
    assert (request["exactly"]["allocationMode"], request["exactly"]["count"]) == ("ExactCount", 1)
    assert request["exactly"]["tolerations"] == [{"key": "a", "operator": "Equal"}]
    every = created(CLAIMS, claim(allocationMode="All"))["spec"]["devices"]["requests"][0]
    assert "count" not in every["exactly"]


def test_a_taint_gets_its_time() -> None:
    taints = [{"key": "a", "effect": "NoSchedule"}]
    device = created(SLICES, slice_(taints=taints))["spec"]["devices"][0]
    assert device["taints"][0]["timeAdded"].endswith("Z")


def test_a_namespace_carries_its_name_and_a_finalizer() -> None:
    new = created(NAMESPACES, {"metadata": {"name": "a"}, "status": {"phase": "Terminating"}})
    assert new["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}
    assert new["spec"] == {"finalizers": ["kubernetes"]}
    assert new["status"] == {"phase": "Active"}


def test_a_node_brings_its_status() -> None:
    new = created(NODES, {"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "4"}}})
    assert new["status"]["allocatable"] == {"cpu": "4"}
    assert new["status"]["nodeInfo"]["kubeletVersion"] == ""


def test_a_claim_leaves_its_status_at_the_door() -> None:
    reservation = {"resource": "pods", "name": "a", "uid": "u"}
    document = {**claim(), "status": {"reservedFor": [reservation]}}
    assert created(CLAIMS, document)["status"] == {}


def test_webhooks_and_bindings_get_their_defaults() -> None:
    info = resource("mutatingwebhookconfigurations")
    webhook = created(info, {"metadata": {"name": "a"}, "webhooks": [{"name": "a.b.c"}]})[
        "webhooks"
    ][0]
    assert webhook["failurePolicy"] == "Fail"
    assert webhook["reinvocationPolicy"] == "Never"
    assert webhook["timeoutSeconds"] == 10
    binding = created(
        resource("rolebindings"),
        {
            "metadata": {"name": "a"},
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
        },
    )
    assert binding["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    assert [subject.get("apiGroup") for subject in binding["subjects"]] == [
        "rbac.authorization.k8s.io",
        None,
    ]


def test_the_main_door_leaves_the_status() -> None:
    old = created(PODS, pod())
    new = prepared_for_update(PODS, changed(old, status={"phase": "Failed"}), old, "")
    assert new == old


def test_the_generation_counts_changes_of_the_spec() -> None:
    old = created(SLICES, slice_())
    labelled = changed(old, metadata={**old["metadata"], "labels": {"a": "b"}})
    assert prepared_for_update(SLICES, labelled, old, "")["metadata"]["generation"] == 1
    spec = {**old["spec"], "pool": {**old["spec"]["pool"], "generation": 2}}
    assert (
        prepared_for_update(SLICES, changed(old, spec=spec), old, "")["metadata"]["generation"] == 2
    )


def test_the_status_door_leaves_everything_else() -> None:
    old = created(PODS, pod())
    wanted = changed(old, spec={**old["spec"], "hostname": "a"}, status={"phase": "Running"})
    wanted["metadata"] = {**old["metadata"], "labels": {"a": "b"}}
    new = prepared_for_update(PODS, wanted, old, "status")
    assert new["spec"] == old["spec"]
    assert new["status"] == {"phase": "Running"}
    assert new["metadata"]["labels"] == {"a": "b"}


def test_the_status_door_of_a_claim_leaves_its_labels_too() -> None:
    old = created(CLAIMS, claim())
    wanted = changed(old, metadata={**old["metadata"], "labels": {"a": "b"}})
    assert prepared_for_update(CLAIMS, wanted, old, "status")["metadata"] == old["metadata"]


def test_what_drivers_report_goes_with_the_allocation() -> None:
    device = {"driver": "d.e", "pool": "p", "device": "g"}
    allocation = {"devices": {"results": [{**device, "request": "gpu"}]}}
    base = created(CLAIMS, claim())
    old = changed(base, status={"allocation": allocation, "devices": [device]})
    new = prepared_for_update(CLAIMS, changed(old, status={"devices": [device]}), old, "status")
    assert new["status"] == {}


def test_finalizing_a_namespace_changes_only_its_finalizers() -> None:
    old = created(NAMESPACES, {"metadata": {"name": "a"}})
    wanted = changed(old, spec={}, status={"phase": "Gone"})
    new = prepared_for_update(NAMESPACES, wanted, old, "finalize")
    assert new["spec"] == {}
    assert new["status"] == {"phase": "Active"}
    assert prepared_for_update(NAMESPACES, wanted, old, "")["spec"] == old["spec"]


def test_nothing_changes_its_arguments() -> None:
    old = created(PODS, pod())
    wanted = changed(old, status={"phase": "Running"})
    before = copy.deepcopy((old, wanted))
    prepared_for_update(PODS, wanted, old, "status")
    prepared_for_update(PODS, wanted, old, "")
    assert (old, wanted) == before
