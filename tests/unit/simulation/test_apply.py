"""Server-side apply: who owns what, held to a model of the rules."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casaba.simulation.api_server.apply import applied
from casaba.simulation.api_server.field_sets import shown
from casaba.simulation.api_server.last_applied import ANNOTATION
from casaba.simulation.api_server.managed_fields import tracked
from casaba.simulation.api_server.ownership import read_ownership
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import ApiError
from tests.unit.simulation.api_objects import CONFIG_MAPS, LATER, NOW, PODS, body, config_map

Wanted = Mapping[str, str]


def apply(
    info: ResourceInfo,
    current: Object | None,
    wanted: Object,
    manager: str,
    *,
    force: bool = False,
    subresource: str = "",
    now: str = NOW,
) -> Object:
    text = body(wanted)
    return applied(
        info, current, text, manager=manager, force=force, subresource=subresource, now=now
    )


def owners(object_: Object) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in object_["metadata"]["managedFields"]}


@dataclass(frozen=True)
class Form:
    """A way to write named values into an object: entries of a map, or items of a list."""

    info: ResourceInfo
    written: Callable[[Wanted], Object]
    read: Callable[[Object], dict[str, str]]


FIXED = {"fixed": "1"}
"""Always there, so that neither the map nor the list vanishes: who made it would own that."""


def _map_with(data: Wanted) -> Object:
    return config_map(**data, **FIXED)


def _data_of(object_: Object) -> dict[str, str]:
    return {name: value for name, value in object_["data"].items() if name not in FIXED}


def _pod_with(env: Wanted) -> Object:
    items = [{"name": name, "value": value} for name, value in {**env, **FIXED}.items()]
    container = {"name": "main", "image": "i:1", "env": items}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod"},
        "spec": {"containers": [container]},
    }


def _env_of(pod: Object) -> dict[str, str]:
    env = pod["spec"]["containers"][0].get("env", ())
    return {
        item["name"]: item["value"] for item in env if "value" in item and item["name"] not in FIXED
    }


FORMS = [
    Form(CONFIG_MAPS, _map_with, _data_of),
    Form(PODS, _pod_with, _env_of),
]


@dataclass
class Model:
    """What the rules of server-side apply make of named values.

    Where they are items of a list, an item is owned apart from its value, and takes it along.
    """

    has_items: bool
    values: dict[str, str] = field(default_factory=dict)
    owned: dict[str, set[str]] = field(default_factory=dict)
    items: dict[str, set[str]] = field(default_factory=dict)

    def conflicts(self, manager: str, wanted: Wanted) -> set[str]:
        """Values that others own and that would change."""
        return {name for name in self._changed(wanted) if self._by_others(manager, name)}

    def _changed(self, wanted: Wanted) -> set[str]:
        return {name for name, value in wanted.items() if self.values.get(name) != value}

    def _by_others(self, manager: str, name: str) -> bool:
        return any(name in names for other, names in self.owned.items() if other != manager)

    def apply(self, manager: str, wanted: Wanted) -> None:
        """What is taken is lost to others; what is given up goes unless others own it."""
        for other, names in self.owned.items():
            if other != manager:
                names -= self._changed(wanted)
        given_up = self.owned.get(manager, set()) - wanted.keys()
        given_up_items = self.items.get(manager, set()) - wanted.keys()
        self.owned[manager], self.items[manager] = set(wanted), set(wanted)
        for name in given_up:
            if not self._by_others(manager, name):
                del self.values[name]
        if self.has_items:
            self._drop(given_up_items - self._existing_items())
        self.values |= wanted

    def update(self, manager: str, values: Wanted) -> None:
        """What is set is the updater's alone, what is gone is nobody's."""
        self._drop((self._existing_items() | self.values.keys()) - values.keys())
        changed = self._changed(values)
        for names in self.owned.values():
            names -= changed
        new_items = values.keys() - self._existing_items()
        self.owned.setdefault(manager, set()).update(changed)
        self.items.setdefault(manager, set()).update(new_items)
        self.values = dict(values)

    def _existing_items(self) -> set[str]:
        return {name for names in self.items.values() for name in names}

    def _drop(self, gone: set[str]) -> None:
        for names in (*self.owned.values(), *self.items.values()):
            names -= gone
        for name in gone:
            self.values.pop(name, None)


UPDATER = "updater"
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", UPDATER]),
        st.dictionaries(st.sampled_from(["x", "y", "z"]), st.sampled_from("12"), max_size=3),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


def _owned_names(object_: Object) -> dict[str, set[str]]:
    names: dict[str, set[str]] = {}
    for entry in read_ownership(object_).entries.values():
        values = {shown(path) for path in entry.fields}
        names[entry.manager.name] = {
            name
            for name in "xyz"
            if values & {f".data.{name}", f'.spec.containers[name="main"].env[name="{name}"].value'}
        }
    return names


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.info.kind)
@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_any_series_of_applies_follows_the_rules(
    form: Form, steps: list[tuple[str, dict[str, str], bool]]
) -> None:
    model, current = Model(has_items=form.info is PODS), None
    for manager, wanted, force in steps:
        document = form.written(wanted)
        if manager == UPDATER:
            current = tracked(
                form.info, document, current, manager=UPDATER, subresource="", now=NOW
            )
            model.update(manager, wanted)
            assert _without_empty(_owned_names(current)) == _without_empty(model.owned)
            continue
        if model.conflicts(manager, wanted) and not force:
            with pytest.raises(ApiError, match="Apply failed with"):
                apply(form.info, current, document, manager)
            continue
        current = apply(form.info, current, document, manager, force=force)
        model.apply(manager, wanted)
        assert form.read(current) == model.values
        assert _without_empty(_owned_names(current)) == _without_empty(model.owned)
        assert apply(form.info, current, document, manager, now=LATER) == current


def _without_empty(owned: dict[str, set[str]]) -> dict[str, set[str]]:
    return {name: names for name, names in owned.items() if names}


def test_an_item_that_is_given_up_goes() -> None:
    one = apply(CONFIG_MAPS, None, config_map(a="1", b="2"), "me")
    two = apply(CONFIG_MAPS, one, config_map(a="1"), "me")
    assert two["data"] == {"a": "1"}
    assert owners(two) == {"me": {"f:data": {"f:a": {}}}}


def test_a_conflict_names_the_manager_and_the_field() -> None:
    one = apply(CONFIG_MAPS, None, config_map(a="1"), "me")
    with pytest.raises(ApiError) as refused:
        apply(CONFIG_MAPS, one, config_map(a="2"), "you")
    assert str(refused.value) == 'Apply failed with 1 conflict: conflict with "me": .data.a'
    assert refused.value.status["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "me"', "field": ".data.a"}
    ]
    taken = apply(CONFIG_MAPS, one, config_map(a="2"), "you", force=True)
    assert owners(taken) == {"you": {"f:data": {"f:a": {}}}}


def test_several_conflicts_are_listed_by_manager() -> None:
    one = apply(CONFIG_MAPS, None, config_map(a="1", b="1"), "me")
    two = tracked(
        CONFIG_MAPS,
        {**one, "data": {**one["data"], "c": "1"}},
        one,
        manager="tool",
        operation="Update",
        subresource="",
        now=NOW,
    )
    with pytest.raises(ApiError) as refused:
        apply(CONFIG_MAPS, two, config_map(a="2", b="2", c="2"), "you")
    assert str(refused.value) == (
        'Apply failed with 3 conflicts: conflicts with "me":\n- .data.a\n- .data.b\n'
        'conflicts with "tool" using v1:\n- .data.c'
    )


def test_equal_values_are_owned_together_and_stay_when_one_leaves() -> None:
    one = apply(CONFIG_MAPS, None, config_map(a="1"), "me")
    two = apply(CONFIG_MAPS, one, config_map(a="1"), "you")
    assert owners(two) == {name: {"f:data": {"f:a": {}}} for name in ("me", "you")}
    three = apply(CONFIG_MAPS, two, config_map(), "me")
    assert three["data"] == {"a": "1"}
    assert list(owners(three)) == ["you"]


def test_lists_that_are_atomic_are_owned_as_a_whole() -> None:
    toleration = {"key": "a", "operator": "Exists"}
    pod = _pod_with({})
    pod["spec"]["tolerations"] = [toleration]
    one = apply(PODS, None, pod, "me")
    assert owners(one)["me"]["f:spec"]["f:tolerations"] == {}
    pod["spec"]["tolerations"] = [toleration, {"key": "b", "operator": "Exists"}]
    with pytest.raises(ApiError, match=r"\.spec\.tolerations"):
        apply(PODS, one, pod, "you")


@pytest.mark.parametrize(
    ("live", "wanted", "order"),
    [("xy", "zy", "xzy"), ("xyz", "zx", "yzx"), ("xyz", "qzwx", "yqzwx"), ("", "ba", "ba")],
)
def test_items_that_others_own_keep_their_place(live: str, wanted: str, order: str) -> None:
    one = apply(PODS, None, _pod_with(dict.fromkeys(live, "1")), "me")
    two = apply(PODS, one, _pod_with(dict.fromkeys(wanted, "1")), "you")
    assert "".join(_env_of(two)) == order


def test_a_key_that_has_a_default_may_be_left_out() -> None:
    pod = _pod_with({})
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    one = apply(PODS, None, pod, "me")
    ports = owners(one)["me"]["f:spec"]["f:containers"]['k:{"name":"main"}']["f:ports"]
    assert list(ports) == ['k:{"containerPort":80,"protocol":"TCP"}']
    assert apply(PODS, one, pod, "me", now=LATER) == one


def test_the_status_belongs_to_its_own_door() -> None:
    one = apply(PODS, None, _pod_with({}), "me")
    condition = {"type": "Ready", "status": "True"}
    wanted = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod"},
        "status": {"conditions": [condition]},
    }
    two = apply(PODS, one, wanted, "kubelet", subresource="status")
    entry = next(e for e in two["metadata"]["managedFields"] if e["manager"] == "kubelet")
    assert entry["subresource"] == "status"
    main = apply(PODS, two, {**wanted, "status": {"phase": "Failed"}}, "other", subresource="")
    assert "other" not in owners(main)


def test_what_nobody_tracked_belongs_to_a_manager_before_the_first_apply() -> None:
    plain = {**config_map(a="1"), "metadata": {"name": "map", "uid": "u"}}
    with pytest.raises(ApiError, match='conflict with "before-first-apply" using v1'):
        apply(CONFIG_MAPS, plain, config_map(a="2"), "me")
    forced = apply(CONFIG_MAPS, plain, config_map(a="2"), "me", force=True)
    assert owners(forced) == {
        "before-first-apply": {"f:data": {}},
        "me": {"f:data": {"f:a": {}}},
    }


@pytest.mark.parametrize(
    ("wanted", "code", "told"),
    [
        (b"a: [", 400, "error decoding YAML"),
        (b"[]", 400, "error decoding YAML"),
        (b"apiVersion: v2\nkind: ConfigMap", 400, "invalid object type: /v2, Kind=ConfigMap"),
        (b"apiVersion: v1\nkind: Secret", 400, "invalid object type: /v1, Kind=Secret"),
        (
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {managedFields: []}",
            400,
            "metadata.managedFields must be nil",
        ),
        (
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndate: {}",
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): "
            ".date: field not declared in schema",
        ),
        (b"apiVersion: v1\nkind: ConfigMap\ndata: 3", 500, "failed to convert new object"),
    ],
)
def test_what_cannot_be_applied_is_told(wanted: bytes, code: int, told: str) -> None:
    with pytest.raises(ApiError) as refused:
        applied(CONFIG_MAPS, None, wanted, manager="m", force=False, subresource="", now=NOW)
    assert refused.value.code == code
    assert told in str(refused.value)


def test_an_item_comes_once() -> None:
    pod = _pod_with({})
    pod["spec"]["containers"] *= 2
    with pytest.raises(ApiError) as refused:
        apply(PODS, None, pod, "me")
    told = '.spec.containers: duplicate entries for key [name="main"]'
    assert str(refused.value).endswith(told)


def test_kubectl_takes_over_what_it_applied_from_the_client() -> None:
    sent = config_map(a="1", b="1")
    annotations = {ANNOTATION: json.dumps(sent)}
    stored = {
        **sent,
        "metadata": {"name": "map", "annotations": annotations},
        "data": {"a": "1", "b": "2"},
    }
    live = tracked(
        CONFIG_MAPS, stored, None, manager="kubectl-client-side-apply", subresource="", now=NOW
    )
    with pytest.raises(ApiError, match=r"1 conflict: .*: \.data\.b"):
        apply(CONFIG_MAPS, live, config_map(a="9", b="9"), "kubectl")
    new = apply(CONFIG_MAPS, live, config_map(a="9", b="2"), "kubectl")
    assert json.loads(new["metadata"]["annotations"][ANNOTATION])["data"] == {"a": "9", "b": "2"}
    with pytest.raises(ApiError, match="1 conflict"):
        apply(CONFIG_MAPS, live, config_map(a="9"), "somebody")


def test_a_repeated_key_is_refused_where_fields_are_checked_strictly() -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b, a: c}"
    with pytest.raises(ApiError, match="error strict decoding YAML"):
        applied(
            CONFIG_MAPS,
            None,
            text,
            manager="m",
            force=False,
            subresource="",
            now=NOW,
            field_validation="Strict",
        )
