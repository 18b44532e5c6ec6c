"""The list of managers after creates, updates and patches."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from casaba.simulation.api_server.field_sets import (
    FieldSet,
    compact,
    from_fields_v1,
    in_order,
    shown,
    to_fields_v1,
)
from casaba.simulation.api_server.managed_fields import ANCIENT, UPDATERS, tracked
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from tests.unit.simulation.api_objects import (
    CLAIMS,
    CONFIG_MAPS,
    LATER,
    NODES,
    NOW,
    PODS,
    claim,
    config_map,
    pod,
    read,
)


def track(
    info: ResourceInfo,
    new: Object,
    old: Object | None,
    manager: str = "me",
    subresource: str = "",
    now: str = NOW,
) -> Object:
    return tracked(
        info, new, old, manager=manager, operation="Update", subresource=subresource, now=now
    )


def entries(object_: Object) -> list[Any]:
    return list(object_["metadata"].get("managedFields", ()))


def fields(object_: Object) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in entries(object_)}


def with_data(old: Object, **data: str) -> Object:
    return {**old, "data": data}


STEPS = st.one_of(
    st.tuples(st.just("f"), st.text("ab:/.", min_size=1, max_size=3).filter(lambda t: t != ".")),
    st.tuples(st.just("k"), st.builds(lambda v: compact({"name": v}), st.text(max_size=3))),
    st.tuples(st.just("v"), st.builds(compact, st.text(max_size=3) | st.integers())),
)


@given(st.frozensets(st.lists(STEPS, min_size=1, max_size=4).map(tuple), max_size=6))
def test_a_set_of_fields_survives_its_json(paths: FieldSet) -> None:
    assert from_fields_v1(to_fields_v1(paths)) == paths
    assert sorted(in_order(paths)) == sorted(paths)


def test_a_path_is_shown_as_people_write_it() -> None:
    path = (("f", "spec"), ("k", '{"name":"a","port":1}'), ("v", '"x"'))
    assert shown(path) == '.spec[name="a",port=1][="x"]'


def test_the_creator_owns_what_it_sent() -> None:
    new = track(CONFIG_MAPS, config_map(a="1"), None)
    assert entries(new) == [
        {
            "manager": "me",
            "operation": "Update",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}},
        }
    ]


def test_names_and_what_go_writes_anyway_belong_to_nobody() -> None:
    assert entries(track(NODES, read(NODES, {"metadata": {"name": "n"}}), None)) == []
    claimed = fields(track(CLAIMS, read(CLAIMS, claim()), None))
    assert claimed == {"me": {"f:spec": {"f:devices": {"f:requests": {}}}}}


def test_items_of_lists_are_named_by_their_keys() -> None:
    owned = fields(track(PODS, read(PODS, pod()), None))["me"]["f:spec"]["f:containers"]
    item = owned['k:{"name":"main"}']
    assert item["."] == {}
    assert {"f:image", "f:name", "f:resources"} <= item.keys()


def test_whoever_changes_a_field_owns_it() -> None:
    old = track(CONFIG_MAPS, config_map(a="1", b="1"), None)
    new = track(CONFIG_MAPS, with_data(old, a="2", b="1"), old, "you", now=LATER)
    assert fields(new) == {
        "me": {"f:data": {".": {}, "f:b": {}}},
        "you": {"f:data": {"f:a": {}}},
    }
    assert [entry["time"] for entry in entries(new)] == [NOW, LATER]


def test_what_is_removed_belongs_to_nobody() -> None:
    old = track(CONFIG_MAPS, config_map(a="1", b="1"), None)
    new = track(CONFIG_MAPS, with_data(old, b="1"), old, "you")
    assert fields(new) == {"me": {"f:data": {".": {}, "f:b": {}}}}


def test_a_write_that_changes_nothing_leaves_the_time() -> None:
    old = track(CONFIG_MAPS, config_map(a="1"), None)
    assert track(CONFIG_MAPS, with_data(old, a="1"), old, now=LATER) == old
    assert track(CONFIG_MAPS, with_data(old, a="1"), old, "you", now=LATER) == old


def test_a_manager_has_one_entry_for_each_door() -> None:
    old = track(PODS, read(PODS, pod()), None)
    running = {**old, "status": {"phase": "Running"}}
    new = track(PODS, running, old, subresource="status")
    newer = track(
        PODS, {**new, "status": {"phase": "Failed"}}, new, subresource="status", now=LATER
    )
    assert [(entry.get("subresource"), entry["time"]) for entry in entries(newer)] == [
        (None, NOW),
        ("status", LATER),
    ]
    assert fields({**newer, "metadata": {"managedFields": entries(newer)[1:]}})["me"] == {
        "f:status": {"f:phase": {}}
    }


def test_a_client_that_forgets_the_list_changes_nothing() -> None:
    old = track(CONFIG_MAPS, config_map(a="1"), None)
    forgetful = with_data({**old, "metadata": {"name": "map"}}, a="1")
    assert fields(track(CONFIG_MAPS, forgetful, old)) == fields(old)


def test_a_client_may_clear_the_list() -> None:
    old = track(CONFIG_MAPS, config_map(a="1"), None)
    nothings: tuple[list[Object], ...] = ([], [{}])
    for nothing in nothings:
        cleared = {**old, "metadata": {"name": "map", "managedFields": nothing}}
        new = track(CONFIG_MAPS, cleared, old)
        assert entries(new) == []
        assert entries(track(CONFIG_MAPS, with_data(new, a="2"), new)) == []


def test_a_list_that_makes_no_sense_is_none() -> None:
    old = track(CONFIG_MAPS, config_map(a="1"), None)
    for nonsense in (
        [{"operation": "Update"}],
        [3],
        [{"apiVersion": "v1", "operation": "Update", "fieldsV1": {"x": {}}}],
    ):
        strange = {**old, "metadata": {"name": "map", "managedFields": nonsense}}
        assert fields(track(CONFIG_MAPS, strange, old)) == fields(old)


def test_the_oldest_of_many_managers_are_joined() -> None:
    object_ = track(CONFIG_MAPS, config_map(), None)
    for number in range(UPDATERS + 3):
        new = with_data(object_, **object_.get("data", {}), **{f"k{number}": "1"})
        now = f"2026-01-02T03:04:{number:02}Z"
        object_ = track(CONFIG_MAPS, new, object_ if number else None, f"m{number}", now=now)
    names = [entry["manager"] for entry in entries(object_)]
    assert len(names) == UPDATERS
    assert ANCIENT in names
    assert "m0" not in names
