"""Rules for changes of objects; those for new ones are in the conformance suite's table."""

import copy
from typing import Any

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.strategy import validated
from tests.unit.simulation.api_objects import (
    CLAIMS,
    CONFIG_MAPS,
    NODES,
    PODS,
    SLICES,
    claim,
    config_map,
    created,
    pod,
    resource,
    slice_,
)

DEVICE = {"driver": "d.e", "pool": "p", "device": "g"}
ALLOCATION = {"devices": {"results": [{**DEVICE, "request": "gpu"}]}}
RESERVATION = {"resource": "pods", "name": "p", "uid": "1"}


def told(
    info: ResourceInfo, new: Object, old: Object | None = None, subresource: str = ""
) -> dict[str, str]:
    """What is wrong, by field."""
    return {error.field: error.message for error in validated(info, new, old, subresource)}


def with_status(old: Object, **status: Any) -> Object:
    return {**copy.deepcopy(old), "status": status}


def status_told(old: Object, **status: Any) -> dict[str, str]:
    return told(CLAIMS, with_status(old, **status), old, "status")


def test_good_objects_are_accepted() -> None:
    for info, document in (
        (PODS, pod()),
        (CLAIMS, claim()),
        (SLICES, slice_(capacity={"memory": {"value": "1Gi"}})),
        (CONFIG_MAPS, config_map(a="1")),
    ):
        new = created(info, document)
        assert told(info, new) == {}
        assert told(info, new, new) == {}


def test_the_spec_of_a_claim_stays() -> None:
    old = created(CLAIMS, claim())
    new = copy.deepcopy(old)
    new["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    assert told(CLAIMS, new, old)["spec"].endswith("field is immutable")


def test_an_allocation_is_written_once() -> None:
    old = created(CLAIMS, claim())
    assert status_told(old, allocation=ALLOCATION) == {}
    allocated = with_status(old, allocation=ALLOCATION)
    assert status_told(allocated, allocation=ALLOCATION, reservedFor=[RESERVATION]) == {}
    assert status_told(allocated) == {}
    other: Object = {"devices": {"results": []}}
    assert status_told(allocated, allocation=other)["status.allocation"].endswith("immutable")


def test_only_an_allocated_claim_is_reserved() -> None:
    old = created(CLAIMS, claim())
    message = status_told(old, reservedFor=[RESERVATION])["status.reservedFor"]
    assert message == "Forbidden: may not be specified when `allocated` is not set"


def test_a_claim_that_is_being_deleted_takes_no_new_reservations() -> None:
    old = with_status(created(CLAIMS, claim()), allocation=ALLOCATION, reservedFor=[RESERVATION])
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert status_told(old, allocation=ALLOCATION, reservedFor=[RESERVATION]) == {}
    more = [RESERVATION, {**RESERVATION, "uid": "2"}]
    assert "status.reservedFor" in status_told(old, allocation=ALLOCATION, reservedFor=more)


def test_a_result_must_be_for_a_request_of_the_claim() -> None:
    old = created(CLAIMS, claim())
    other = {"devices": {"results": [{**DEVICE, "request": "cpu"}]}}
    assert list(status_told(old, allocation=other)) == [
        "status.allocation.devices.results[0].request"
    ]


def test_a_share_has_a_uuid_in_small_letters() -> None:
    old = created(CLAIMS, claim())
    for share, good in (
        ("0b1bbd1c-7b1a-4c4a-8a57-1f2f0a5c7f11", True),
        ("0B1BBD1C-7b1a-4c4a-8a57-1f2f0a5c7f11", False),
        ("share-1", False),
    ):
        result = {**DEVICE, "request": "gpu", "shareID": share}
        errors = status_told(old, allocation={"devices": {"results": [result]}})
        assert (errors == {}) is good


def test_drivers_report_only_of_allocated_devices() -> None:
    old = with_status(created(CLAIMS, claim()), allocation=ALLOCATION)
    assert status_told(old, allocation=ALLOCATION, devices=[{**DEVICE, "data": {"a": 1}}]) == {}
    stranger = {**DEVICE, "device": "h"}
    assert (
        "must be an allocated device"
        in status_told(old, allocation=ALLOCATION, devices=[stranger])["status.devices[0]"]
    )
    assert "status.devices[1]" in status_told(old, allocation=ALLOCATION, devices=[DEVICE, DEVICE])
    network = {**DEVICE, "networkData": {"ips": ["10.0.0.1"]}}
    assert list(status_told(old, allocation=ALLOCATION, devices=[network])) == [
        "status.devices[0].networkData.ips[0]"
    ]


def test_a_condition_is_complete() -> None:
    old = with_status(created(CLAIMS, claim()), allocation=ALLOCATION)
    device = {**DEVICE, "conditions": [{"type": "Ready", "status": "Maybe", "reason": "a b"}]}
    assert set(status_told(old, allocation=ALLOCATION, devices=[device])) == {
        "status.devices[0].conditions[0].status",
        "status.devices[0].conditions[0].lastTransitionTime",
        "status.devices[0].conditions[0].reason",
    }


def test_the_pool_and_driver_of_a_slice_stay() -> None:
    old = created(SLICES, slice_())
    new = copy.deepcopy(old)
    new["spec"]["driver"], new["spec"]["pool"]["name"] = "other.example.com", "other"
    new["spec"]["nodeName"] = "other"
    assert set(told(SLICES, new, old)) == {"spec.driver", "spec.pool.name", "spec.nodeName"}


def test_stored_taints_of_a_device_are_not_looked_at_again() -> None:
    old = created(SLICES, slice_(taints=[{"key": "a b", "effect": "NoSchedule"}]))
    assert told(SLICES, old, old) == {}
    assert "spec.devices[0].taints[0].key" in told(SLICES, old)


def test_a_device_class_is_checked_where_it_changes() -> None:
    info = resource("deviceclasses")
    old = created(info, {"metadata": {"name": "a"}, "spec": {"selectors": [{}]}})
    assert told(info, old, old) == {}
    assert told(info, old) == {"spec.selectors[0].cel": "Required value"}


def test_a_pod_changes_only_in_its_images_deadline_and_tolerations() -> None:
    old = created(PODS, pod(tolerations=[{"key": "a", "operator": "Exists"}]))
    image, host, gone, fewer = (copy.deepcopy(old) for _ in range(4))
    image["spec"]["containers"][0]["image"] = "image:2"
    image["spec"]["activeDeadlineSeconds"] = 10
    image["spec"]["tolerations"].append({"key": "b", "operator": "Exists"})
    assert told(PODS, image, old) == {}
    host["spec"]["hostname"] = "host"
    assert "pod updates may not change fields other than" in told(PODS, host, old)["spec"]
    gone["spec"]["tolerations"] = []
    assert list(told(PODS, gone, old)) == ["spec.tolerations"]
    fewer["spec"]["containers"] *= 2
    assert "spec.containers" in told(PODS, fewer, old)


def test_a_deadline_only_comes_nearer() -> None:
    old = created(PODS, pod(activeDeadlineSeconds=10))
    for seconds, good in ((5, True), (20, False), (None, False)):
        new = copy.deepcopy(old)
        new["spec"]["activeDeadlineSeconds"] = seconds
        if seconds is None:
            del new["spec"]["activeDeadlineSeconds"]
        assert (told(PODS, new, old) == {}) is good


def test_a_deleted_object_gets_no_new_finalizers() -> None:
    old = created(CONFIG_MAPS, config_map())
    old["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c"]}
    new = copy.deepcopy(old)
    new["metadata"]["finalizers"] = []
    assert told(CONFIG_MAPS, new, old) == {}
    new["metadata"]["finalizers"] = ["a.b/c", "a.b/d"]
    assert (
        'found new finalizers []string{"a.b/d"}'
        in told(CONFIG_MAPS, new, old)["metadata.finalizers"]
    )


def test_what_is_immutable_stays() -> None:
    old = {**created(CONFIG_MAPS, config_map(a="1")), "immutable": True}
    new = {**old, "data": {"a": "2"}, "immutable": False}
    assert set(told(CONFIG_MAPS, new, old)) == {"data", "immutable"}
    secrets = resource("secrets")
    secret = created(secrets, {"metadata": {"name": "a"}})
    assert list(told(secrets, {**secret, "type": "Other"}, secret)) == ["type"]


def test_a_role_of_a_binding_stays() -> None:
    info = resource("rolebindings")
    old = created(info, {"metadata": {"name": "a"}, "roleRef": {"kind": "Role", "name": "r"}})
    new = {**old, "roleRef": {**old["roleRef"], "name": "s"}}
    assert told(info, new, old)["roleRef"].endswith("cannot change roleRef")


def test_the_provider_of_a_node_is_set_once() -> None:
    old = created(NODES, {"metadata": {"name": "a"}, "spec": {"providerID": "x"}})
    new = {**old, "spec": {"providerID": "y"}}
    assert list(told(NODES, new, old)) == ["spec.providerID"]
