"""The kinds of patches that change an object where it is."""

import pytest

from tests.conformance.api_server.door import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    ApiDoor,
    Object,
)
from tests.conformance.api_server.objects import (
    allocation,
    claim,
    made,
    made_config_map,
    pod,
)


async def _patched(api: ApiDoor, patch: object, content_type: str) -> Object:
    return (await api.patch(api.core("configmaps", "one"), patch, content_type)).object()


async def test_a_merge_patch_sets_and_removes(api: ApiDoor) -> None:
    await made_config_map(api, data={"a": "1", "b": "2"})
    told = await _patched(api, {"data": {"a": None, "c": "3"}}, MERGE_PATCH)
    assert told["data"] == {"b": "2", "c": "3"}


async def test_a_merge_patch_replaces_lists(api: ApiDoor) -> None:
    await made_config_map(api, finalizers=["example.com/a", "example.com/b"])
    patch = {"metadata": {"finalizers": ["example.com/c"]}}
    told = await _patched(api, patch, MERGE_PATCH)
    assert told["metadata"]["finalizers"] == ["example.com/c"]
    await _patched(api, {"metadata": {"finalizers": None}}, MERGE_PATCH)


async def test_a_json_patch_does_its_operations_in_order(api: ApiDoor) -> None:
    await made_config_map(api, data={"a": "1", "b": "2"})
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "remove", "path": "/data/a"},
        {"op": "replace", "path": "/data/b", "value": "3"},
        {"op": "copy", "from": "/data/b", "path": "/data/d"},
        {"op": "move", "from": "/data/d", "path": "/data/e"},
        {"op": "add", "path": "/data/f", "value": "4"},
    ]
    told = await _patched(api, operations, JSON_PATCH)
    assert told["data"] == {"b": "3", "e": "3", "f": "4"}


async def test_a_json_patch_escapes_slashes(api: ApiDoor) -> None:
    await made_config_map(api, labels={"example.com/a": "1"})
    operation = {"op": "replace", "path": "/metadata/labels/example.com~1a", "value": "2"}
    told = await _patched(api, [operation], JSON_PATCH)
    assert told["metadata"]["labels"] == {"example.com/a": "2"}


async def test_a_json_patch_may_replace_what_is_missing(api: ApiDoor) -> None:
    await made_config_map(api, data={"a": "1"})
    operation = {"op": "replace", "path": "/data/b", "value": "2"}
    assert (await _patched(api, [operation], JSON_PATCH))["data"] == {"a": "1", "b": "2"}


async def test_a_json_patch_inserts_into_lists(api: ApiDoor) -> None:
    await made_config_map(api, finalizers=["example.com/a", "example.com/b"])
    operations = [
        {"op": "add", "path": "/metadata/finalizers/1", "value": "example.com/c"},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/d"},
    ]
    told = await _patched(api, operations, JSON_PATCH)
    finalizers = [f"example.com/{letter}" for letter in "acbd"]
    assert told["metadata"]["finalizers"] == finalizers
    await _patched(api, {"metadata": {"finalizers": None}}, MERGE_PATCH)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/data/none"},
        {"op": "test", "path": "/data/a", "value": "2"},
        {"op": "move", "from": "/data/none", "path": "/data/b"},
    ],
    ids=lambda operation: operation["op"],
)
async def test_a_json_patch_that_does_not_fit_changes_nothing(
    api: ApiDoor, operation: Object
) -> None:
    first = await made_config_map(api, data={"a": "1"})
    operations = [{"op": "add", "path": "/data/z", "value": "1"}, operation]
    answer = await api.patch(api.core("configmaps", "one"), operations, JSON_PATCH)
    message = answer.refused(422, "Invalid")
    assert message == "the server rejected our request due to an error in our request"
    assert (await api.get(api.core("configmaps", "one"))).object() == first


async def test_a_strategic_patch_merges_maps(api: ApiDoor) -> None:
    await made_config_map(api, data={"a": "1", "b": "2"})
    told = await _patched(api, {"data": {"a": None, "c": "3"}}, STRATEGIC_PATCH)
    assert told["data"] == {"b": "2", "c": "3"}


async def test_a_strategic_patch_merges_lists_by_their_key(api: ApiDoor) -> None:
    path = api.core("pods")
    await made(api, path, pod("one"))
    first = {"type": "A", "status": "True"}
    second = {"type": "B", "status": "True"}
    for conditions in ([first], [second], [{**first, "status": "False"}]):
        body = {"status": {"conditions": conditions}}
        told = (await api.patch(f"{path}/one/status", body, STRATEGIC_PATCH)).object()
    found = {item["type"]: item["status"] for item in told["status"]["conditions"]}
    assert found == {"A": "False", "B": "True"}


async def test_a_strategic_patch_deletes_from_lists(api: ApiDoor) -> None:
    path = api.core("pods")
    await made(api, path, pod("one"))
    body = {"status": {"conditions": [{"type": type_, "status": "True"} for type_ in "AB"]}}
    (await api.patch(f"{path}/one/status", body, STRATEGIC_PATCH)).object()
    body = {"status": {"conditions": [{"type": "A", "$patch": "delete"}]}}
    told = (await api.patch(f"{path}/one/status", body, STRATEGIC_PATCH)).object()
    assert [item["type"] for item in told["status"]["conditions"]] == ["B"]


async def test_a_strategic_patch_merges_lists_of_plain_values(api: ApiDoor) -> None:
    await made_config_map(api, finalizers=["example.com/a"])
    patch: Object = {"metadata": {"finalizers": ["example.com/b"]}}
    told = await _patched(api, patch, STRATEGIC_PATCH)
    assert sorted(told["metadata"]["finalizers"]) == ["example.com/a", "example.com/b"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    told = await _patched(api, patch, STRATEGIC_PATCH)
    assert told["metadata"]["finalizers"] == ["example.com/b"]
    await _patched(api, {"metadata": {"finalizers": None}}, MERGE_PATCH)


async def test_a_strategic_patch_can_replace(api: ApiDoor) -> None:
    await made_config_map(api, data={"a": "1", "b": "2"})
    told = await _patched(api, {"data": {"$patch": "replace", "c": "3"}}, STRATEGIC_PATCH)
    assert told["data"] == {"c": "3"}


async def test_reserved_for_is_merged_by_uid(api: ApiDoor) -> None:
    path = api.named("resource.k8s.io/v1", "resourceclaims")
    await made(api, path, claim("one"))
    # Not pods: a controller takes those away that do not exist.
    users = [{"resource": "things", "name": name, "uid": name} for name in ("a", "b")]
    status = {"status": {"allocation": allocation(), "reservedFor": users}}
    (await api.patch(f"{path}/one/status", status)).object()
    gone = {"status": {"reservedFor": [{"uid": "a", "$patch": "delete"}]}}
    told = (await api.patch(f"{path}/one/status", gone, STRATEGIC_PATCH)).object()
    assert told["status"]["reservedFor"] == users[1:]


async def test_an_unknown_kind_of_patch_is_refused(api: ApiDoor) -> None:
    await made_config_map(api)
    answer = await api.patch(api.core("configmaps", "one"), {}, "application/json")
    message = answer.refused(415, "UnsupportedMediaType")
    assert message == "415: Unsupported Media Type"


async def test_a_patch_of_a_missing_object_is_refused(api: ApiDoor) -> None:
    answer = await api.patch(api.core("configmaps", "none"), {"data": {"a": "1"}})
    assert answer.refused(404, "NotFound") == 'configmaps "none" not found'


async def test_a_patch_that_is_not_json_is_refused(api: ApiDoor) -> None:
    await made_config_map(api)
    answer = await api.patch(api.core("configmaps", "one"), "{", MERGE_PATCH)
    assert answer.refused(400, "BadRequest") == "error decoding patch: unexpected end of JSON input"


async def test_a_patch_cannot_rename(api: ApiDoor) -> None:
    await made_config_map(api)
    answer = await api.patch(api.core("configmaps", "one"), {"metadata": {"name": "two"}})
    message = answer.refused(400, "BadRequest")
    assert message == "the name of the object (two) does not match the name on the URL (one)"


async def test_a_patch_that_changes_nothing_keeps_the_version(api: ApiDoor) -> None:
    first = await made_config_map(api, data={"a": "1"})
    told = await _patched(api, {"data": {"a": "1"}}, MERGE_PATCH)
    assert told["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_patch_of_labels_leaves_the_rest(api: ApiDoor) -> None:
    await made_config_map(api, data={"a": "1"}, labels={"x": "1", "y": "1"})
    told = await _patched(api, {"metadata": {"labels": {"x": None}}}, MERGE_PATCH)
    assert told["metadata"]["labels"] == {"y": "1"}
    assert told["data"] == {"a": "1"}


async def test_a_strategic_patch_keeps_the_order_that_it_is_told(api: ApiDoor) -> None:
    body = pod("one")
    image = "registry.example/nothing:1"
    body["spec"]["containers"] = [{"name": name, "image": image} for name in ("a", "b")]
    await made(api, api.core("pods"), body)
    changed = [{"name": "b", "image": "registry.example/other:1"}]
    order = [{"name": "a"}, {"name": "b"}]
    patch = {"spec": {"$setElementOrder/containers": order, "containers": changed}}
    told = (await api.patch(api.core("pods", "one"), patch, STRATEGIC_PATCH)).object()
    images = [(item["name"], item["image"]) for item in told["spec"]["containers"]]
    assert images == [("a", image), ("b", "registry.example/other:1")]


async def test_a_patch_with_an_unknown_field_is_warned_of(api: ApiDoor) -> None:
    await made_config_map(api)
    answer = await api.patch(api.core("configmaps", "one"), {"extra": 1})
    assert "extra" not in answer.object()
    assert answer.headers["Warning"] == '299 - "unknown field \\"extra\\""'
