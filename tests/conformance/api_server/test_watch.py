"""Watches: from where they start, what they show, how they end."""

import asyncio

import pytest

from tests.conformance.api_server.door import METADATA, TABLE, ApiDoor
from tests.conformance.api_server.objects import config_map, made_config_map

LABELS = {"test": "1"}


def _path(api: ApiDoor, query: str = "") -> str:
    return f"{api.core('configmaps')}?labelSelector=test{query}"


async def _version(api: ApiDoor) -> str:
    version: str = (await api.get(_path(api))).object()["metadata"]["resourceVersion"]
    return version


async def test_a_watch_from_a_version_shows_what_comes_after(api: ApiDoor) -> None:
    await made_config_map(api, "before", labels=LABELS)
    version = await _version(api)
    await made_config_map(api, "after", labels=LABELS)
    async with api.watch(_path(api, f"&resourceVersion={version}")) as watch:
        assert await watch.named() == ("ADDED", "after")
        (await api.patch(api.core("configmaps", "before"), {"data": {"a": "1"}})).object()
        assert await watch.named() == ("MODIFIED", "before")
        (await api.delete(api.core("configmaps", "after"))).object()
        assert await watch.named() == ("DELETED", "after")


async def test_a_watch_from_nowhere_begins_with_what_is_there(api: ApiDoor) -> None:
    for name in ("a", "b"):
        await made_config_map(api, name, labels=LABELS)
    async with api.watch(_path(api)) as watch:
        shown = {await watch.named(), await watch.named()}
        assert shown == {("ADDED", "a"), ("ADDED", "b")}
        await made_config_map(api, "c", labels=LABELS)
        assert await watch.named() == ("ADDED", "c")


async def test_a_watch_from_zero_begins_with_what_is_there(api: ApiDoor) -> None:
    await made_config_map(api, "a", labels=LABELS)
    async with api.watch(_path(api, "&resourceVersion=0")) as watch:
        assert await watch.named() == ("ADDED", "a")


async def test_versions_of_events_rise(api: ApiDoor) -> None:
    version = await _version(api)
    async with api.watch(_path(api, f"&resourceVersion={version}")) as watch:
        versions = [int(version)]
        await made_config_map(api, "a", labels=LABELS)
        (await api.patch(api.core("configmaps", "a"), {"data": {"a": "1"}})).object()
        (await api.delete(api.core("configmaps", "a"))).object()
        for _ in range(3):
            _, told = await watch.event()
            versions.append(int(told["metadata"]["resourceVersion"]))
    assert versions == sorted(set(versions))


async def test_an_event_holds_the_object_with_its_kind(api: ApiDoor) -> None:
    made = await made_config_map(api, "a", labels=LABELS)
    async with api.watch(_path(api)) as watch:
        assert await watch.event() == ("ADDED", made)


async def test_an_object_that_stops_to_match_is_deleted_for_the_watch(api: ApiDoor) -> None:
    await made_config_map(api, "a", labels=LABELS)
    async with api.watch(_path(api)) as watch:
        await watch.named()
        patch = {"metadata": {"labels": {"test": None}}, "data": {"new": "1"}}
        after = (await api.patch(api.core("configmaps", "a"), patch)).object()
        type_, told = await watch.event()
        assert type_ == "DELETED"
        assert told["metadata"]["labels"] == LABELS
        assert told["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]


async def test_an_object_that_begins_to_match_is_added_for_the_watch(api: ApiDoor) -> None:
    await made_config_map(api, "a")
    version = await _version(api)
    async with api.watch(_path(api, f"&resourceVersion={version}")) as watch:
        patch = {"metadata": {"labels": LABELS}}
        (await api.patch(api.core("configmaps", "a"), patch)).object()
        assert await watch.named() == ("ADDED", "a")


async def test_a_field_selector_narrows_a_watch_to_one_object(api: ApiDoor) -> None:
    path = f"{api.core('configmaps')}?fieldSelector=metadata.name%3Db"
    async with api.watch(path) as watch:
        for name in ("a", "b"):
            await made_config_map(api, name)
        assert await watch.named() == ("ADDED", "b")


async def test_a_watch_of_all_namespaces_sees_this_one(api: ApiDoor) -> None:
    path = f"/api/v1/configmaps?labelSelector=test%3D{api.prefix}"
    async with api.watch(path) as watch:
        await made_config_map(api, "a", labels={"test": api.prefix})
        assert await watch.named() == ("ADDED", "a")


async def test_a_watch_ends_cleanly_at_its_timeout(api: ApiDoor) -> None:
    async with api.watch(_path(api, "&timeoutSeconds=1")) as watch:
        assert await watch.has_ended()


async def test_a_watch_list_begins_with_all_and_a_mark(api: ApiDoor) -> None:
    for name in ("a", "b"):
        await made_config_map(api, name, labels=LABELS)
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(_path(api, query)) as watch:
        events = [await watch.event() for _ in range(3)]
        assert [type_ for type_, _ in events] == ["ADDED", "ADDED", "BOOKMARK"]
        assert {told["metadata"]["name"] for _, told in events[:2]} == {"a", "b"}
        mark = events[2][1]
        assert mark["kind"] == "ConfigMap"
        assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        newest = max(int(told["metadata"]["resourceVersion"]) for _, told in events[:2])
        assert int(mark["metadata"]["resourceVersion"]) >= newest
        await made_config_map(api, "c", labels=LABELS)
        assert await watch.named() == ("ADDED", "c")


async def test_a_watch_list_of_nothing_is_marked_too(api: ApiDoor) -> None:
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(_path(api, query)) as watch:
        type_, mark = await watch.event()
        assert type_ == "BOOKMARK"
        assert "k8s.io/initial-events-end" in mark["metadata"]["annotations"]


async def test_a_watch_can_go_on_from_the_mark(api: ApiDoor) -> None:
    await made_config_map(api, "a", labels=LABELS)
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(_path(api, query)) as watch:
        await watch.event()
        _, mark = await watch.event()
    await made_config_map(api, "b", labels=LABELS)
    version = mark["metadata"]["resourceVersion"]
    async with api.watch(_path(api, f"&resourceVersion={version}")) as watch:
        assert await watch.named() == ("ADDED", "b")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            "&sendInitialEvents=true",
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
            "resourceVersionMatch to NotOlderThan",
        ),
        (
            "&resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless "
            "sendInitialEvents is provided",
        ),
        (
            "&sendInitialEvents=true&resourceVersionMatch=Exact",
            "[resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
            "resourceVersionMatch to NotOlderThan, resourceVersionMatch: Unsupported value: "
            '"Exact": supported values: "NotOlderThan"]',
        ),
    ],
)
async def test_contradictions_are_refused(api: ApiDoor, query: str, words: str) -> None:
    message = (await api.get(_path(api, f"&watch=1{query}"))).refused(422, "Invalid")
    assert message == f'ListOptions.meta.k8s.io "" is invalid: {words}'


async def test_a_version_that_was_forgotten_is_told_in_the_stream(api: ApiDoor) -> None:
    await made_config_map(api, "a", labels=LABELS)
    async with api.watch(_path(api, "&resourceVersion=1")) as watch:
        type_, told = await watch.event()
        assert type_ == "ERROR"
        assert (told["kind"], told["status"]) == ("Status", "Failure")
        assert (told["code"], told["reason"]) == (410, "Expired")
        assert told["message"].startswith("too old resource version: 1 (")
        assert await watch.has_ended()


async def test_a_watch_list_from_the_future_is_told_in_the_stream(api: ApiDoor) -> None:
    version = int(await _version(api)) + 1_000_000
    query = f"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={version}"
    async with api.watch(_path(api, query + "&allowWatchBookmarks=true")) as watch:
        type_, told = await watch.event()
    assert (type_, told["code"], told["reason"]) == ("ERROR", 504, "Timeout")
    assert told["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_a_version_that_is_no_number_is_refused(api: ApiDoor) -> None:
    answer = await api.get(_path(api, "&watch=1&resourceVersion=x"))
    message = answer.refused(500, "")
    assert message == (
        'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax'
    )


async def test_a_watch_can_show_tables(api: ApiDoor) -> None:
    for name in ("a", "b"):
        await made_config_map(api, name, labels=LABELS)
    async with api.watch(_path(api), accept=TABLE) as watch:
        (_, first), (_, second) = await watch.event(), await watch.event()
    assert (first["kind"], first["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert second["columnDefinitions"] is None
    names = {told["rows"][0]["object"]["metadata"]["name"] for told in (first, second)}
    assert names == {"a", "b"}


async def test_a_watch_can_show_metadata_alone(api: ApiDoor) -> None:
    await made_config_map(api, "a", labels=LABELS, data={"x": "1"})
    async with api.watch(_path(api), accept=METADATA) as watch:
        _, told = await watch.event()
    assert (told["kind"], told["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    assert "data" not in told


async def test_many_changes_arrive_complete_and_in_order(api: ApiDoor) -> None:
    version = await _version(api)
    names = [f"n{number:02}" for number in range(30)]
    async with api.watch(_path(api, f"&resourceVersion={version}")) as watch:
        await asyncio.gather(
            *(api.post(api.core("configmaps"), config_map(name, labels=LABELS)) for name in names)
        )
        shown = [await watch.event() for _ in names]
    assert sorted(told["metadata"]["name"] for _, told in shown) == names
    versions = [int(told["metadata"]["resourceVersion"]) for _, told in shown]
    assert versions == sorted(versions)


async def test_a_dry_run_is_not_seen(api: ApiDoor) -> None:
    version = await _version(api)
    async with api.watch(_path(api, f"&resourceVersion={version}")) as watch:
        body = config_map("dry", labels=LABELS)
        (await api.post(f"{api.core('configmaps')}?dryRun=All", body)).object(201)
        await made_config_map(api, "real", labels=LABELS)
        assert await watch.named() == ("ADDED", "real")
