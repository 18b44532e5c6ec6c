"""JSON patches, merge patches and strategic merge patches."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.simulation.api_server.patches import (
    JSON_PATCH,
    MERGE_PATCH,
    OPERATIONS,
    STRATEGIC_MERGE_PATCH,
    merge_patched,
    patched,
    patched_and_told,
)
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.statuses import ApiError
from tests.unit.simulation.api_objects import (
    CONFIG_MAPS,
    NODES,
    PODS,
    body,
    config_map,
    created,
    pod,
)

OLD = created(CONFIG_MAPS, config_map(a="1", b="2"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab/~", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


def json_patched(*operations: Object, old: Object = OLD) -> Object:
    return patched(CONFIG_MAPS, old, JSON_PATCH, body(list(operations)))


def refusal(content_type: str, patch: Any, how: str = "") -> ApiError:
    with pytest.raises(ApiError) as refused:
        patched_and_told(CONFIG_MAPS, OLD, content_type, body(patch), how)
    return refused.value


def test_the_operations_of_a_json_patch() -> None:
    assert json_patched({"op": "add", "path": "/data/c", "value": "3"})["data"]["c"] == "3"
    assert json_patched({"op": "remove", "path": "/data/a"})["data"] == {"b": "2"}
    assert json_patched({"op": "replace", "path": "/data/a", "value": "9"})["data"]["a"] == "9"
    assert json_patched({"op": "move", "from": "/data/a", "path": "/data/c"})["data"] == {
        "b": "2",
        "c": "1",
    }
    assert json_patched({"op": "copy", "from": "/data/a", "path": "/data/c"})["data"]["c"] == "1"
    assert json_patched({"op": "test", "path": "/data/a", "value": "1"}) == OLD


def test_escaped_names_and_the_ends_of_lists() -> None:
    finalizers = {"op": "add", "path": "/metadata/finalizers", "value": ["a.b/c"]}
    more = {"op": "add", "path": "/metadata/finalizers/-", "value": "a.b/d"}
    first = {"op": "add", "path": "/metadata/finalizers/0", "value": "a.b/b"}
    new = json_patched(finalizers, more, first)
    assert new["metadata"]["finalizers"] == ["a.b/b", "a.b/c", "a.b/d"]
    labels = {"op": "add", "path": "/metadata/labels", "value": {}}
    label = {"op": "add", "path": "/metadata/labels/a.b~1c", "value": "d"}
    assert json_patched(labels, label)["metadata"]["labels"] == {"a.b/c": "d"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/data/z"},
        {"op": "test", "path": "/data/a", "value": "2"},
        {"op": "test", "path": "/data/z", "value": "2"},
        {"op": "add", "path": "/nothing/here", "value": 1},
        {"op": "add", "path": "data", "value": 1},
        {"op": "add", "path": "/data/c"},
        {"op": "move", "from": "/data", "path": "/data/a"},
        {"op": "copy", "from": "/data/z", "path": "/data/a"},
        {"op": "dance", "path": "/data/a"},
        {"op": "remove", "path": "/data/a/0"},
        {"op": "remove"},
    ],
)
def test_an_operation_that_cannot_be_done_refuses_the_patch(operation: Object) -> None:
    error = refusal(JSON_PATCH, [operation])
    assert (error.code, error.status["reason"]) == (422, "Invalid")


def test_a_patch_that_is_none_is_a_bad_request() -> None:
    assert refusal(JSON_PATCH, {}).code == 400
    assert refusal(MERGE_PATCH, []).code == 400
    with pytest.raises(ApiError, match="unexpected end of JSON input"):
        patched(CONFIG_MAPS, OLD, MERGE_PATCH, b"{")


def test_a_patch_may_not_have_too_many_operations() -> None:
    operation = {"op": "test", "path": "/data/a", "value": "1"}
    assert refusal(JSON_PATCH, [operation] * (OPERATIONS + 1)).code == 413


def test_other_content_types_are_not_understood() -> None:
    assert refusal("text/plain", {}).code == 415


@given(VALUES, VALUES)
def test_a_merge_patch_of_a_difference_makes_the_new_value(old: Any, new: Any) -> None:
    old, new = {"value": _without_nulls(old) or {}}, {"value": _without_nulls(new) or {}}
    assert merge_patched(old, _difference(old, new)) == new


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value


def _difference(old: Any, new: Any) -> Any:
    """A merge patch, by the definition of RFC 7386."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch = {name: None for name in old if name not in new}
    return patch | {name: _difference(old.get(name), new[name]) for name in new}


@given(VALUES)
def test_a_merge_patch_leaves_no_nulls_in_objects(patch: Any) -> None:
    assert _without_nulls(merge_patched({}, patch)) == merge_patched({}, patch)


def test_an_unknown_field_is_told_or_refused() -> None:
    new, warnings = patched_and_told(CONFIG_MAPS, OLD, MERGE_PATCH, body({"date": {}}), "")
    assert (new, warnings) == (OLD, ('unknown field "date"',))
    error = refusal(MERGE_PATCH, {"date": {}}, "Strict")
    assert error.code == 422
    assert 'strict decoding error: unknown field "date"' in str(error)


def test_a_patch_that_makes_no_object_is_refused() -> None:
    assert refusal(MERGE_PATCH, {"data": 3}).code == 422
    assert refusal(MERGE_PATCH, {"kind": "Secret"}).code == 422
    assert refusal(JSON_PATCH, [{"op": "replace", "path": "", "value": []}]).code == 422


def strategic(patch: Object, **spec: Any) -> Object:
    old = created(PODS, pod(**spec))
    before = copy.deepcopy(old)
    new = patched(PODS, old, STRATEGIC_MERGE_PATCH, body(patch))
    assert old == before
    return new


TWO = [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]


def images(new: Object) -> dict[str, str]:
    return {container["name"]: container["image"] for container in new["spec"]["containers"]}


def test_a_strategic_merge_patch_finds_items_by_their_key() -> None:
    new = strategic({"spec": {"containers": [{"name": "b", "image": "b:2"}]}}, containers=TWO)
    assert images(new) == {"a": "a:1", "b": "b:2"}


def test_a_strategic_merge_patch_deletes_and_replaces_items() -> None:
    gone = {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}
    assert images(strategic(gone, containers=TWO)) == {"b": "b:1"}
    other = {"spec": {"containers": [{"$patch": "replace"}, {"name": "c", "image": "c:1"}]}}
    assert images(strategic(other, containers=TWO)) == {"c": "c:1"}


def test_a_strategic_merge_patch_orders_items() -> None:
    order = [{"name": "b"}, {"name": "a"}]
    new = strategic({"spec": {"$setElementOrder/containers": order}}, containers=TWO)
    assert list(images(new)) == ["b", "a"]


def test_a_strategic_merge_patch_adds_to_and_takes_from_plain_lists() -> None:
    old = created(CONFIG_MAPS, config_map())
    old["metadata"]["finalizers"] = ["a.b/c"]
    more = {"metadata": {"finalizers": ["a.b/d", "a.b/c"]}}
    new = patched(CONFIG_MAPS, old, STRATEGIC_MERGE_PATCH, body(more))
    assert new["metadata"]["finalizers"] == ["a.b/c", "a.b/d"]
    less = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}}
    newer = patched(CONFIG_MAPS, new, STRATEGIC_MERGE_PATCH, body(less))
    assert newer["metadata"]["finalizers"] == ["a.b/d"]


def test_a_strategic_merge_patch_replaces_a_map() -> None:
    new = strategic(
        {"spec": {"nodeSelector": {"$patch": "replace", "c": "d"}}}, nodeSelector={"a": "b"}
    )
    assert new["spec"]["nodeSelector"] == {"c": "d"}


def test_retained_keys_are_all_that_is_left() -> None:
    volumes = [{"name": "v", "hostPath": {"path": "/a"}}]
    change = {"name": "v", "emptyDir": {}, "$retainKeys": ["name", "emptyDir"]}
    new = strategic({"spec": {"volumes": [change]}}, volumes=volumes)
    assert new["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]


def test_lists_without_a_key_are_replaced() -> None:
    new = strategic(
        {"spec": {"tolerations": [{"key": "b", "operator": "Exists"}]}},
        tolerations=[{"key": "a", "operator": "Exists"}],
    )
    assert new["spec"]["tolerations"] == [{"key": "b", "operator": "Exists"}]


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        (
            {"spec": {"containers": [{"image": "i"}]}},
            "map: map[image:i] does not contain declared merge key: name",
        ),
        (
            {"metadata": {"labels": {"$patch": "burn"}}},
            "unknown patch type: burn in map: map[$patch:burn]",
        ),
    ],
)
def test_a_strategic_merge_patch_that_makes_no_sense_is_told(patch: Object, told: str) -> None:
    with pytest.raises(ApiError) as refused:
        strategic(patch)
    assert (refused.value.code, str(refused.value)) == (500, told)


def test_conditions_are_merged_by_type() -> None:
    old = created(NODES, {"metadata": {"name": "n"}})
    for status in ("False", "True"):
        condition = {"type": "Ready", "status": status}
        patch = body({"status": {"conditions": [condition]}})
        old = patched(NODES, old, STRATEGIC_MERGE_PATCH, patch)
    assert [condition["status"] for condition in old["status"]["conditions"]] == ["True"]
    assert json.loads(json.dumps(old)) == old
