"""Creating, reading and changing objects: versions, conflicts, preconditions, names."""

import re

from tests.conformance.api_server.door import JSON_PATCH, ApiDoor
from tests.conformance.api_server.objects import config_map, made, made_config_map, pod

STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


async def test_a_new_object_gets_identity_version_and_time(api: ApiDoor) -> None:
    metadata = (await made_config_map(api))["metadata"]
    assert metadata["namespace"] == api.namespace
    assert re.fullmatch(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", metadata["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert int(metadata["resourceVersion"]) > 0


async def test_what_the_server_owns_cannot_be_given(api: ApiDoor) -> None:
    given = {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"}
    metadata = (await made_config_map(api, **given))["metadata"]
    assert metadata["uid"] != "mine"
    assert not metadata["creationTimestamp"].startswith("2001")


async def test_an_object_read_is_the_object_written(api: ApiDoor) -> None:
    written = await made_config_map(api, data={"key": "value"})
    assert (await api.get(api.core("configmaps", "one"))).object() == written


async def test_half_a_character_is_replaced(api: ApiDoor) -> None:
    written = await made_config_map(
        api, data={"half": "\ud800.", "two": "\udc00\ud800", "pair": "\U0001f600"}
    )
    assert written["data"] == {"half": "\ufffd.", "two": "\ufffd\ufffd", "pair": "\U0001f600"}


async def test_a_version_cannot_be_given_to_a_new_object(api: ApiDoor) -> None:
    answer = await api.post(api.core("configmaps"), config_map("one", resourceVersion="7"))
    message = answer.refused(500, "")
    assert message == "resourceVersion should not be set on objects to be created"


async def test_a_second_object_of_a_name_is_refused(api: ApiDoor) -> None:
    await made_config_map(api)
    answer = await api.post(api.core("configmaps"), config_map("one"))
    assert answer.refused(409, "AlreadyExists") == 'configmaps "one" already exists'
    assert answer.json["details"] == {"name": "one", "kind": "configmaps"}


async def test_a_missing_object_is_named(api: ApiDoor) -> None:
    answer = await api.get(api.named("resource.k8s.io/v1", "resourceclaims", "none"))
    message = answer.refused(404, "NotFound")
    assert message == 'resourceclaims.resource.k8s.io "none" not found'
    details = {"name": "none", "group": "resource.k8s.io", "kind": "resourceclaims"}
    assert answer.json["details"] == details


async def test_a_generated_name_is_the_prefix_and_five_letters(api: ApiDoor) -> None:
    body = {"metadata": {"generateName": "some-"}}
    names = {(await made(api, api.core("configmaps"), body))["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(re.fullmatch(r"some-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


async def test_an_object_without_a_name_is_refused(api: ApiDoor) -> None:
    answer = await api.post(api.core("configmaps"), {"metadata": {}})
    message = answer.refused(422, "Invalid")
    assert message == (
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )
    assert answer.causes == [("FieldValueRequired", "metadata.name")]


async def test_a_name_in_the_path_and_another_in_the_object_are_refused(api: ApiDoor) -> None:
    await made_config_map(api)
    answer = await api.put(api.core("configmaps", "one"), config_map("two"))
    message = answer.refused(400, "BadRequest")
    assert message == "the name of the object (two) does not match the name on the URL (one)"


async def test_a_namespace_in_the_path_and_another_in_the_object_are_refused(api: ApiDoor) -> None:
    answer = await api.post(api.core("configmaps"), config_map("one", namespace="default"))
    message = answer.refused(400, "BadRequest")
    assert message == (
        "the namespace of the provided object does not match the namespace sent on the request"
    )


async def test_an_update_moves_the_version_on(api: ApiDoor) -> None:
    first = await made_config_map(api)
    second = (
        await api.put(api.core("configmaps", "one"), {**first, "data": {"key": "value"}})
    ).object()
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert second["metadata"]["creationTimestamp"] == first["metadata"]["creationTimestamp"]


async def test_an_update_that_changes_nothing_keeps_the_version(api: ApiDoor) -> None:
    first = await made_config_map(api, data={"key": "value"})
    assert (await api.put(api.core("configmaps", "one"), first)).object() == first


async def test_a_stale_update_is_a_conflict(api: ApiDoor) -> None:
    first = await made_config_map(api)
    path = api.core("configmaps", "one")
    (await api.put(path, {**first, "data": {"key": "a"}})).object()
    answer = await api.put(path, {**first, "data": {"key": "b"}})
    message = answer.refused(409, "Conflict")
    assert message == f'Operation cannot be fulfilled on configmaps "one": {STALE}'
    assert answer.json["details"] == {"name": "one", "kind": "configmaps"}


async def test_an_update_without_a_version_overwrites(api: ApiDoor) -> None:
    await made_config_map(api)
    body = config_map("one", {"key": "b"})
    assert (await api.put(api.core("configmaps", "one"), body)).object()["data"] == {"key": "b"}


async def test_a_lease_must_be_updated_with_its_version(api: ApiDoor) -> None:
    path = api.named("coordination.k8s.io/v1", "leases")
    await made(api, path, {"metadata": {"name": "one"}, "spec": {"holderIdentity": "a"}})
    body = {"metadata": {"name": "one"}, "spec": {"holderIdentity": "b"}}
    answer = await api.put(f"{path}/one", body)
    assert answer.causes == [("FieldValueInvalid", "metadata.resourceVersion")]
    assert "must be specified for an update" in answer.refused(422, "Invalid")


async def test_an_update_of_another_object_of_the_name_is_a_conflict(api: ApiDoor) -> None:
    await made_config_map(api)
    uid = "00000000-0000-4000-8000-000000000000"
    answer = await api.put(api.core("configmaps", "one"), config_map("one", uid=uid))
    message = answer.refused(409, "Conflict")
    assert "Precondition failed: UID in precondition: " + uid in message


async def test_an_update_of_a_missing_object_is_refused(api: ApiDoor) -> None:
    answer = await api.put(api.core("configmaps", "none"), config_map("none"))
    assert answer.refused(404, "NotFound") == 'configmaps "none" not found'


async def test_a_lease_may_be_created_by_an_update(api: ApiDoor) -> None:
    path = api.named("coordination.k8s.io/v1", "leases", "one")
    answer = await api.put(path, {"metadata": {"name": "one"}, "spec": {"holderIdentity": "a"}})
    assert answer.object(201)["spec"] == {"holderIdentity": "a"}


async def test_an_object_of_another_kind_is_refused(api: ApiDoor) -> None:
    answer = await api.post(api.core("configmaps"), pod("one"))
    message = answer.refused(400, "BadRequest")
    assert message == (
        'Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to '
        "(core.ConfigMap): unknown conversion"
    )


async def test_kind_and_version_may_be_left_out(api: ApiDoor) -> None:
    told = await made(api, api.core("configmaps"), {"metadata": {"name": "one"}})
    assert (told["kind"], told["apiVersion"]) == ("ConfigMap", "v1")


async def test_a_body_may_be_yaml(api: ApiDoor) -> None:
    body = "metadata:\n  name: one\ndata:\n  key: 'value'\n"
    answer = await api.post(api.core("configmaps"), body, content_type="application/yaml")
    assert answer.object(201)["data"] == {"key": "value"}


async def test_a_patch_can_demand_a_version(api: ApiDoor) -> None:
    first = await made_config_map(api)
    path = api.core("configmaps", "one")
    version = first["metadata"]["resourceVersion"]
    (await api.patch(path, {"data": {"key": "a"}})).object()
    stale = {"metadata": {"resourceVersion": version}, "data": {"key": "b"}}
    message = (await api.patch(path, stale)).refused(409, "Conflict")
    assert message == f'Operation cannot be fulfilled on configmaps "one": {STALE}'


async def test_a_patch_cannot_change_the_identity(api: ApiDoor) -> None:
    await made_config_map(api)
    uid = "00000000-0000-4000-8000-000000000000"
    answer = await api.patch(api.core("configmaps", "one"), {"metadata": {"uid": uid}})
    assert "metadata.uid: Invalid value" in answer.refused(422, "Invalid")
    assert ("FieldValueInvalid", "metadata.uid") in answer.causes


async def test_the_test_operation_of_a_json_patch_guards(api: ApiDoor) -> None:
    await made_config_map(api, data={"key": "a"})
    operations = [
        {"op": "test", "path": "/data/key", "value": "b"},
        {"op": "replace", "path": "/data/key", "value": "c"},
    ]
    answer = await api.patch(api.core("configmaps", "one"), operations, JSON_PATCH)
    message = answer.refused(422, "Invalid")
    assert message == "the server rejected our request due to an error in our request"


async def test_texts_of_a_secret_are_kept_as_bytes(api: ApiDoor) -> None:
    body = {"metadata": {"name": "one"}, "stringData": {"a": "text"}, "data": {"b": "eA=="}}
    told = await made(api, api.core("secrets"), body)
    assert told["data"] == {"a": "dGV4dA==", "b": "eA=="}
    assert "stringData" not in told
    assert told["type"] == "Opaque"


async def test_bytes_that_are_none_are_refused(api: ApiDoor) -> None:
    body = {"metadata": {"name": "one"}, "data": {"a": "?"}}
    message = (await api.post(api.core("secrets"), body)).refused(400, "BadRequest")
    assert "illegal base64 data" in message


async def test_an_immutable_object_stays_as_it_is(api: ApiDoor) -> None:
    await made_config_map(api, data={"a": "1"})
    path = api.core("configmaps", "one")
    (await api.patch(path, {"immutable": True})).object()
    answer = await api.patch(path, {"data": {"a": "2"}})
    answer.refused(422, "Invalid")
    assert answer.causes == [("FieldValueForbidden", "data")]
