"""The store against a model: versions, the past, and what watches of it see."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.simulation.api_server.requests import ANONYMOUS, ResourceRequest
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import ApiError
from casaba.simulation.api_server.store import Store
from casaba.simulation.api_server.watch import WatchFeed
from casaba.simulation.api_server.watch_log import Key

CONFIG_MAPS = ResourceInfo(plural="configmaps", kind="ConfigMap", namespaced=True)

Objects = dict[Key, dict[str, Any]]

names = st.sampled_from("abcd")
namespaces = st.sampled_from(["n1", "n2"])
labels = st.dictionaries(st.just("on"), st.sampled_from(["y", "n"]), max_size=1)
writes = st.lists(
    st.tuples(st.sampled_from(["put", "put", "remove"]), namespaces, names, labels), max_size=40
)


def write(store: Store, kind: str, namespace: str, name: str, labels: dict[str, str]) -> None:
    """Put an object, whether it is there or not, or remove it if it is."""
    found = store.find(CONFIG_MAPS, namespace, name)
    if kind == "remove":
        if found:
            store.remove(CONFIG_MAPS, found)
    elif found:
        metadata = {**found.object["metadata"], "labels": labels}
        store.replace(CONFIG_MAPS, {**found.object, "metadata": metadata}, of=found)
    else:
        metadata = {"namespace": namespace, "name": name, "labels": labels, "uid": "u"}
        object_ = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
        store.create(CONFIG_MAPS, object_)


def state(store: Store) -> Objects:
    """All objects of now."""
    return {found.key: found.object for found in store.all(CONFIG_MAPS)}


def watching(store: Store, **query: str) -> WatchFeed:
    """A watch with these query parameters."""
    query = {"watch": "1", **query}
    namespace = query.pop("namespace", "")
    return WatchFeed(
        store,
        ResourceRequest(
            user=ANONYMOUS, verb="watch", resource=CONFIG_MAPS, namespace=namespace, query=query
        ),
    )


def follow(objects: Objects, feed: WatchFeed, *, start: bool = False) -> None:
    """Do to the objects what the events of a watch tell; each must make sense."""
    for event in feed.start() if start else feed.take():
        key = event.found.key
        assert (key in objects) == (event.kind != "ADDED")
        if event.kind == "DELETED":
            del objects[key]
        else:
            objects[key] = event.found.object


@given(writes, st.data())
def test_any_past_version_and_its_watch_lead_to_the_present(
    done: list[tuple[str, str, str, dict[str, str]]], data: st.DataObject
) -> None:
    store = Store(log_limit=1000)
    past = {store.version: state(store)}
    for each in done:
        write(store, *each)
        past[store.version] = state(store)
    version = data.draw(st.sampled_from(sorted(past)))
    listed = {f.key: f.object for f in store.as_of(CONFIG_MAPS, version)}
    assert listed == past[version]
    with watching(store, resourceVersion=str(version)) as feed:
        follow(listed, feed, start=True)
    assert listed == state(store)


@given(writes, st.lists(st.booleans(), min_size=40, max_size=40), st.booleans())
def test_a_watch_with_selectors_sees_what_a_list_with_them_would(
    done: list[tuple[str, str, str, dict[str, str]]], reads: list[bool], by_label: bool
) -> None:
    store = Store(log_limit=1000)
    selected = {"labelSelector": "on=y"} if by_label else {"fieldSelector": "metadata.name=a"}
    seen: Objects = {}
    with watching(store, namespace="n1", **selected) as feed:
        follow(seen, feed, start=True)
        for each, read in zip(done, reads, strict=False):
            write(store, *each)
            if read:
                follow(seen, feed)
        follow(seen, feed)
    for key, object_ in state(store).items():
        on = object_["metadata"]["labels"].get("on") == "y"
        wanted = key[0] == "n1" and (on if by_label else key[1] == "a")
        assert (key in seen) == wanted
        if wanted:
            assert seen[key] == object_


@given(writes, st.integers(1, 5))
def test_a_small_log_tells_all_or_says_that_it_can_not(
    done: list[tuple[str, str, str, dict[str, str]]], log_limit: int
) -> None:
    store = Store(log_limit=log_limit)
    first = store.version
    for each in done:
        write(store, *each)
    objects: Objects = {}
    with watching(store, resourceVersion=str(first)) as feed:
        if store.version - first <= log_limit:
            follow(objects, feed, start=True)
            assert objects == state(store)
        else:
            with pytest.raises(ApiError, match="too old resource version"):
                feed.start()


@given(writes)
def test_versions_only_grow_and_are_in_the_objects(
    done: list[tuple[str, str, str, dict[str, str]]],
) -> None:
    store = Store(log_limit=1000)
    for each in done:
        before = store.version
        write(store, *each)
        assert store.version - before in (0, 1)
    versions = [found.version for found in store.all(CONFIG_MAPS)]
    assert len(set(versions)) == len(versions)
    told = [found.object["metadata"]["resourceVersion"] for found in store.all(CONFIG_MAPS)]
    assert told == [str(version) for version in versions]


def test_a_write_that_changes_nothing_makes_no_version() -> None:
    store = Store(log_limit=10)
    write(store, "put", "n", "a", {})
    version = store.version
    write(store, "put", "n", "a", {})
    assert store.version == version


def test_a_write_of_an_old_state_is_a_conflict() -> None:
    store = Store(log_limit=10)
    write(store, "put", "n", "a", {})
    old = store.get(CONFIG_MAPS, "n", "a")
    write(store, "put", "n", "a", {"on": "y"})
    with pytest.raises(ApiError, match="the object has been modified"):
        store.remove(CONFIG_MAPS, old)


def test_compaction_forgets_the_past_but_not_the_present() -> None:
    store = Store(log_limit=10)
    write(store, "put", "n", "a", {})
    old = store.version
    write(store, "put", "n", "b", {})
    with watching(store, resourceVersion=str(store.version)) as current:
        store.compact()
        with watching(store, resourceVersion=str(old)) as late:
            with pytest.raises(ApiError, match="too old resource version"):
                late.start()
        write(store, "put", "n", "c", {})
        assert [event.found.key.name for event in current.take()] == ["c"]
