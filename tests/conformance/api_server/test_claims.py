"""Rules of resource.k8s.io that drivers and schedulers rely on."""

import pytest

from tests.conformance.api_server.door import Answer, ApiDoor, Object
from tests.conformance.api_server.objects import CLAIMS, allocation, claim, made

USER: Object = {"resource": "things", "name": "a", "uid": "a"}


async def _status(api: ApiDoor, status: Object, name: str = "one") -> Answer:
    return await api.patch(
        f"{api.named(CLAIMS, 'resourceclaims', name)}/status", {"status": status}
    )


async def _claimed(api: ApiDoor) -> None:
    await made(api, api.named(CLAIMS, "resourceclaims"), claim("one"))


async def test_requests_get_their_defaults(api: ApiDoor) -> None:
    told = await made(api, api.named(CLAIMS, "resourceclaims"), claim("one"))
    exactly = told["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly == {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}


async def test_asking_for_all_has_no_count(api: ApiDoor) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    told = await made(api, api.named(CLAIMS, "resourceclaims"), claim("one", request))
    assert told["spec"]["devices"]["requests"] == [request]


async def test_capacities_asked_for_are_kept_as_quantities(api: ApiDoor) -> None:
    capacity = {"requests": {"cores": 50, "memory": "10Gi", "any/thing": "1500m"}}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "capacity": capacity}}
    told = await made(api, api.named(CLAIMS, "resourceclaims"), claim("one", request))
    kept = told["spec"]["devices"]["requests"][0]["exactly"]["capacity"]["requests"]
    assert kept == {"cores": "50", "memory": "10Gi", "any/thing": "1500m"}


async def test_the_spec_of_a_claim_cannot_change(api: ApiDoor) -> None:
    await _claimed(api)
    spec = claim("one", {"name": "b", "exactly": {"deviceClassName": "b"}})["spec"]
    path = api.named(CLAIMS, "resourceclaims", "one")
    answer = await api.patch(path, {"spec": spec})
    assert answer.refused(422, "Invalid").endswith("field is immutable")
    assert answer.causes == [("FieldValueInvalid", "spec")]


async def test_the_spec_of_a_template_cannot_change(api: ApiDoor) -> None:
    template = {"metadata": {"name": "one"}, "spec": {"spec": claim("one")["spec"]}}
    await made(api, api.named(CLAIMS, "resourceclaimtemplates"), template)
    path = api.named(CLAIMS, "resourceclaimtemplates", "one")
    answer = await api.patch(path, {"spec": {"metadata": {"labels": {"a": "1"}}}})
    answer.refused(422, "Invalid")
    assert answer.causes == [("FieldValueInvalid", "spec")]


async def test_an_allocation_is_written_once(api: ApiDoor) -> None:
    await _claimed(api)
    (await _status(api, {"allocation": allocation()})).object()
    answer = await _status(api, {"allocation": allocation(pool="other")})
    answer.refused(422, "Invalid")
    assert answer.causes[0][1] == "status.allocation"


async def test_an_allocation_can_be_taken_away(api: ApiDoor) -> None:
    await _claimed(api)
    (await _status(api, {"allocation": allocation()})).object()
    told = (await _status(api, {"allocation": None})).object()
    assert "allocation" not in told["status"]


async def test_a_claim_in_use_keeps_its_allocation(api: ApiDoor) -> None:
    await _claimed(api)
    (await _status(api, {"allocation": allocation(), "reservedFor": [USER]})).object()
    answer = await _status(api, {"allocation": None})
    answer.refused(422, "Invalid")
    assert answer.causes[0][1].startswith("status")


async def test_only_an_allocated_claim_can_be_reserved(api: ApiDoor) -> None:
    await _claimed(api)
    answer = await _status(api, {"reservedFor": [USER]})
    message = answer.refused(422, "Invalid")
    assert "may not be specified when `allocated` is not set" in message
    assert answer.causes == [("FieldValueForbidden", "status.reservedFor")]


async def test_a_deleted_claim_takes_no_more_users(api: ApiDoor) -> None:
    body = claim("one", finalizers=["example.com/hold"])
    await made(api, api.named(CLAIMS, "resourceclaims"), body)
    path = api.named(CLAIMS, "resourceclaims", "one")
    (await _status(api, {"allocation": allocation(), "reservedFor": [USER]})).object()
    (await api.delete(path)).object()
    more = {**USER, "uid": "b"}
    answer = await _status(api, {"reservedFor": [USER, more]})
    assert "new entries may not be added" in answer.refused(422, "Invalid")
    (await _status(api, {"reservedFor": None})).object()
    await api.patch(path, {"metadata": {"finalizers": None}})


async def test_a_user_is_named_once(api: ApiDoor) -> None:
    await _claimed(api)
    status = {"allocation": allocation(), "reservedFor": [USER, USER]}
    answer = await _status(api, status)
    answer.refused(422, "Invalid")
    assert ("FieldValueDuplicate", "status.reservedFor[1]") in answer.causes


async def test_device_status_names_an_allocated_device(api: ApiDoor) -> None:
    await _claimed(api)
    (await _status(api, {"allocation": allocation()})).object()
    device = {"driver": "driver.example", "pool": "pool", "device": "gpu-0"}
    told = (await _status(api, {"devices": [{**device, "data": {"k": 1}}]})).object()
    assert told["status"]["devices"][0]["data"] == {"k": 1}
    answer = await _status(api, {"devices": [{**device, "device": "gpu-9"}]})
    message = answer.refused(422, "Invalid")
    assert "must be an allocated device in the claim" in message


async def test_a_share_has_an_identity_and_what_it_takes(api: ApiDoor) -> None:
    await _claimed(api)
    share = "11111111-2222-4333-8444-555555555555"
    allocated = allocation()
    allocated["devices"]["results"][0] |= {
        "shareID": share,
        "consumedCapacity": {"memory": "10Gi", "cores": "50"},
    }
    told = (await _status(api, {"allocation": allocated})).object()
    result = told["status"]["allocation"]["devices"]["results"][0]
    assert (result["shareID"], result["consumedCapacity"]["cores"]) == (share, "50")


@pytest.mark.parametrize(
    ("field", "value"),
    [("driver", "other.example"), ("nodeName", "other")],
)
async def test_a_slice_keeps_its_driver_and_node(api: ApiDoor, field: str, value: str) -> None:
    name = api.name("slice")
    spec = {
        "driver": "driver.example",
        "nodeName": "none-of-them",
        "pool": {"name": "none-of-them", "generation": 1, "resourceSliceCount": 1},
        "devices": [],
    }
    path = "/apis/resource.k8s.io/v1/resourceslices"
    await made(api, path, {"metadata": {"name": name}, "spec": spec})
    answer = await api.patch(f"{path}/{name}", {"spec": {field: value}})
    answer.refused(422, "Invalid")
    assert answer.causes == [("FieldValueInvalid", f"spec.{field}")]


async def test_the_time_of_a_taint_is_filled_in(api: ApiDoor) -> None:
    name = api.name("slice")
    taint = {"key": "example.com/sick", "effect": "NoSchedule"}
    spec = {
        "driver": "driver.example",
        "nodeName": "none-of-them",
        "pool": {"name": "none-of-them", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "taints": [taint]}],
    }
    path = "/apis/resource.k8s.io/v1/resourceslices"
    told = await made(api, path, {"metadata": {"name": name}, "spec": spec})
    assert told["spec"]["devices"][0]["taints"][0]["timeAdded"]


async def test_admin_access_needs_a_labelled_namespace(api: ApiDoor) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}
    body = claim("one", request)
    answer = await api.post(api.named(CLAIMS, "resourceclaims"), body)
    assert "resource.kubernetes.io/admin-access" in answer.refused(422, "Invalid")
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    (await api.patch(f"/api/v1/namespaces/{api.namespace}", label)).object()
    await made(api, api.named(CLAIMS, "resourceclaims"), body)


async def test_a_class_can_change(api: ApiDoor) -> None:
    name = api.name("class")
    path = "/apis/resource.k8s.io/v1/deviceclasses"
    first = await made(api, path, {"metadata": {"name": name}, "spec": {}})
    selectors = [{"cel": {"expression": 'device.driver == "driver.example"'}}]
    told = (await api.patch(f"{path}/{name}", {"spec": {"selectors": selectors}})).object()
    assert told["metadata"]["generation"] == first["metadata"]["generation"] + 1
