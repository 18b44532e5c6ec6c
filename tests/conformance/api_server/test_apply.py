"""Server-side apply: ownership of fields, conflicts, and what is dropped when no longer applied."""

import json
from typing import Any

from tests.conformance.api_server.door import JSON_PATCH, Answer, ApiDoor, Object
from tests.conformance.api_server.objects import made, made_config_map, pod

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _config(name: str = "one", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def _applied(api: ApiDoor, manager: str, body: Object, query: str = "") -> Answer:
    path = api.core("configmaps", "one")
    return await api.apply(f"{path}?fieldManager={manager}{query}", body)


def _owners(told: Object, *path: str) -> list[tuple[str, str]]:
    """Managers and operations that own a field, by its path in fieldsV1."""
    found = []
    for entry in told["metadata"].get("managedFields", []):
        fields: Any = entry["fieldsV1"]
        for key in path:
            fields = fields.get(key) if fields is not None else None
        if fields is not None:
            found.append((entry["manager"], entry["operation"]))
    return sorted(found)


async def test_apply_creates_what_is_missing(api: ApiDoor) -> None:
    told = (await _applied(api, "a", _config(x="1"))).object(201)
    assert told["data"] == {"x": "1"}
    assert _owners(told, "f:data", "f:x") == [("a", "Apply")]


async def test_applying_the_same_again_changes_nothing(api: ApiDoor) -> None:
    first = (await _applied(api, "a", _config(x="1"))).object(201)
    assert (await _applied(api, "a", _config(x="1"))).object() == first


async def test_fields_no_longer_applied_go_away(api: ApiDoor) -> None:
    (await _applied(api, "a", _config(x="1", y="1"))).object(201)
    told = (await _applied(api, "a", _config(y="1"))).object()
    assert told["data"] == {"y": "1"}


async def test_managers_with_different_fields_live_together(api: ApiDoor) -> None:
    (await _applied(api, "a", _config(x="1"))).object(201)
    told = (await _applied(api, "b", _config(y="1"))).object()
    assert told["data"] == {"x": "1", "y": "1"}
    told = (await _applied(api, "b", _config())).object()
    assert told["data"] == {"x": "1"}


async def test_another_value_is_a_conflict(api: ApiDoor) -> None:
    (await _applied(api, "a", _config(x="1"))).object(201)
    answer = await _applied(api, "b", _config(x="2"))
    message = answer.refused(409, "Conflict")
    assert message == 'Apply failed with 1 conflict: conflict with "a": .data.x'
    details = answer.json["details"]
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "a"', "field": ".data.x"}
    assert details["causes"] == [cause]


async def test_two_conflicts_are_both_named(api: ApiDoor) -> None:
    (await _applied(api, "a", _config(x="1", y="1"))).object(201)
    answer = await _applied(api, "b", _config(x="2", y="2"))
    message = answer.refused(409, "Conflict")
    assert message == ('Apply failed with 2 conflicts: conflicts with "a":\n- .data.x\n- .data.y')


async def test_force_takes_the_field_over(api: ApiDoor) -> None:
    (await _applied(api, "a", _config(x="1"))).object(201)
    told = (await _applied(api, "b", _config(x="2"), "&force=true")).object()
    assert told["data"] == {"x": "2"}
    assert _owners(told, "f:data", "f:x") == [("b", "Apply")]


async def test_the_same_value_is_owned_by_both(api: ApiDoor) -> None:
    (await _applied(api, "a", _config(x="1"))).object(201)
    told = (await _applied(api, "b", _config(x="1"))).object()
    assert _owners(told, "f:data", "f:x") == [("a", "Apply"), ("b", "Apply")]
    told = (await _applied(api, "a", _config())).object()
    assert told["data"] == {"x": "1"}
    assert _owners(told, "f:data", "f:x") == [("b", "Apply")]


async def test_an_update_takes_the_fields_that_it_changes(api: ApiDoor) -> None:
    (await _applied(api, "a", _config(x="1", y="1"))).object(201)
    path = api.core("configmaps", "one")
    told = (await api.patch(f"{path}?fieldManager=c", {"data": {"x": "2"}})).object()
    assert _owners(told, "f:data", "f:x") == [("c", "Update")]
    assert _owners(told, "f:data", "f:y") == [("a", "Apply")]
    answer = await _applied(api, "a", _config(x="1", y="1"))
    message = answer.refused(409, "Conflict")
    assert message.startswith('Apply failed with 1 conflict: conflict with "c" using v1')
    assert message.endswith(": .data.x")


async def test_a_created_object_is_owned_by_its_creator(api: ApiDoor) -> None:
    told = (await api.post(f"{api.core('configmaps')}?fieldManager=maker", _config(x="1"))).object(
        201
    )
    (entry,) = told["metadata"]["managedFields"]
    assert entry["manager"] == "maker"
    assert (entry["operation"], entry["apiVersion"]) == ("Update", "v1")
    assert entry["fieldsType"] == "FieldsV1"
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:x": {}}}


async def test_the_manager_is_the_program_by_default(api: ApiDoor) -> None:
    (entry,) = (await made_config_map(api, data={"x": "1"}))["metadata"]["managedFields"]
    assert entry["manager"] == "conformance"


async def test_apply_needs_a_manager(api: ApiDoor) -> None:
    answer = await api.apply(api.core("configmaps", "one"), _config(x="1"))
    message = answer.refused(422, "Invalid")
    assert message == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
        "apply patch"
    )


async def test_managed_fields_cannot_be_applied(api: ApiDoor) -> None:
    body = _config(x="1")
    body["metadata"]["managedFields"] = [{"manager": "a"}]
    answer = await _applied(api, "a", body)
    assert answer.refused(400, "BadRequest") == "metadata.managedFields must be nil"


async def test_force_is_for_apply_only(api: ApiDoor) -> None:
    await made_config_map(api)
    path = api.core("configmaps", "one")
    answer = await api.patch(f"{path}?force=true", {"data": {"x": "1"}})
    message = answer.refused(422, "Invalid")
    assert message == (
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for '
        "non-apply patch"
    )


async def test_lists_with_keys_are_merged(api: ApiDoor) -> None:
    path = api.core("pods", "one")
    await made(api, api.core("pods"), pod("one"))
    for manager, type_ in (("a", "A"), ("b", "B")):
        conditions = [{"type": type_, "status": "True"}]
        body = {"apiVersion": "v1", "kind": "Pod", "status": {"conditions": conditions}}
        told = (await api.apply(f"{path}/status?fieldManager={manager}", body)).object()
    assert sorted(item["type"] for item in told["status"]["conditions"]) == ["A", "B"]
    key = 'k:{"type":"A"}'
    assert _owners(told, "f:status", "f:conditions", key, "f:status") == [("a", "Apply")]
    body = {"apiVersion": "v1", "kind": "Pod", "status": {}}
    told = (await api.apply(f"{path}/status?fieldManager=a", body)).object()
    assert [item["type"] for item in told["status"]["conditions"]] == ["B"]


async def test_atomic_lists_are_taken_whole(api: ApiDoor) -> None:
    path = f"/apis/resource.k8s.io/v1/resourceslices/{api.name('slice')}"

    def body(*devices: str) -> Object:
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": api.name("slice")},
            "spec": {
                "driver": "driver.example",
                "nodeName": "none",
                "pool": {"name": "none", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": name} for name in devices],
            },
        }

    first = await api.apply(f"{path}?fieldManager=a", body("x", "y"))
    api.made.append(path)
    assert len(first.object(201)["spec"]["devices"]) == 2
    told = (await api.apply(f"{path}?fieldManager=a", body("y"))).object()
    assert told["spec"]["devices"] == [{"name": "y"}]
    assert told["metadata"]["generation"] == 2
    assert _owners(told, "f:spec", "f:devices") == [("a", "Apply")]
    message = (await api.apply(f"{path}?fieldManager=b", body("z"))).refused(409, "Conflict")
    assert message == 'Apply failed with 1 conflict: conflict with "a": .spec.devices'


async def test_an_apply_of_another_name_is_refused(api: ApiDoor) -> None:
    answer = await _applied(api, "a", _config("two", x="1"))
    message = answer.refused(400, "BadRequest")
    assert message == "the name of the object (two) does not match the name on the URL (one)"


async def test_an_apply_of_another_kind_is_refused(api: ApiDoor) -> None:
    body = {**_config(x="1"), "kind": "Secret"}
    answer = await _applied(api, "a", body)
    answer.refused(400, "BadRequest")


async def test_an_apply_can_demand_a_version(api: ApiDoor) -> None:
    (await _applied(api, "a", _config(x="1"))).object(201)
    body = _config(x="2")
    body["metadata"]["resourceVersion"] = "1"
    message = (await _applied(api, "a", body)).refused(409, "Conflict")
    assert "the object has been modified" in message


async def _as_kubectl_create(api: ApiDoor, **data: str) -> None:
    """What `kubectl apply` creates, client side."""
    body = _config(**data)
    last_applied = json.dumps({**body, "metadata": {**body["metadata"], "annotations": {}}})
    body["metadata"]["annotations"] = {LAST_APPLIED: last_applied}
    path = f"{api.core('configmaps')}?fieldManager=kubectl-client-side-apply"
    (await api.post(path, body)).object(201)


async def test_kubectl_takes_over_what_it_had_applied_on_the_client_side(api: ApiDoor) -> None:
    await _as_kubectl_create(api, x="1")
    assert 'conflict with "kubectl-client-side-apply"' in (
        (await _applied(api, "other", _config(x="2"))).refused(409, "Conflict")
    )
    told = (await _applied(api, "kubectl", _config(x="2"))).object()
    assert told["data"] == {"x": "2"}
    assert _owners(told, "f:data", "f:x") == [("kubectl", "Apply")]


async def test_ownership_can_be_written_over(api: ApiDoor) -> None:
    first = (await _applied(api, "a", _config(x="1"))).object(201)
    entries = [{**entry, "manager": "b"} for entry in first["metadata"]["managedFields"]]
    operation = {"op": "replace", "path": "/metadata/managedFields", "value": entries}
    path = api.core("configmaps", "one")
    told = (await api.patch(path, [operation], JSON_PATCH)).object()
    assert _owners(told, "f:data", "f:x") == [("b", "Apply")]


async def test_ownership_can_be_forgotten(api: ApiDoor) -> None:
    (await _applied(api, "a", _config(x="1"))).object(201)
    patch: Object = {"metadata": {"managedFields": [{}]}}
    told = (await api.patch(api.core("configmaps", "one"), patch)).object()
    assert "managedFields" not in told["metadata"]
    message = (await _applied(api, "b", _config(x="2"))).refused(409, "Conflict")
    assert message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.x'
    )


async def test_the_name_of_a_manager_is_short(api: ApiDoor) -> None:
    answer = await _applied(api, "m" * 129, _config(x="1"))
    answer.refused(422, "Invalid")
    assert answer.causes == [("FieldValueTooLong", "fieldManager")]
