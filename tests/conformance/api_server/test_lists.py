"""Lists: pages, versions, and what they are made of."""

import base64
import json

import pytest

from tests.conformance.api_server.door import METADATA_LIST, ApiDoor
from tests.conformance.api_server.objects import made_config_map


async def _five(api: ApiDoor) -> list[str]:
    names = [f"n{number}" for number in range(5)]
    for name in names:
        await made_config_map(api, name, labels={"test": "1"})
    return names


def _path(api: ApiDoor, query: str = "") -> str:
    return f"{api.core('configmaps')}?labelSelector=test{query}"


def _names(told: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [item["metadata"]["name"] for item in told["items"]]


async def test_a_list_has_a_kind_a_version_and_items_in_order(api: ApiDoor) -> None:
    names = await _five(api)
    told = (await api.get(_path(api))).object()
    assert (told["kind"], told["apiVersion"]) == ("ConfigMapList", "v1")
    assert _names(told) == names
    newest = max(int(item["metadata"]["resourceVersion"]) for item in told["items"])
    assert int(told["metadata"]["resourceVersion"]) >= newest
    assert "continue" not in told["metadata"]


async def test_an_empty_list_has_items(api: ApiDoor) -> None:
    assert (await api.get(_path(api))).object()["items"] == []


async def test_items_of_a_list_do_not_repeat_their_kind(api: ApiDoor) -> None:
    await _five(api)
    told = (await api.get(_path(api))).object()
    assert all("kind" not in item and "apiVersion" not in item for item in told["items"])


async def test_pages_add_up_to_the_list(api: ApiDoor) -> None:
    names = await _five(api)
    found, token, versions = [], "", set()
    while True:
        told = (await api.get(_path(api, f"&limit=2&continue={token}"))).object()
        found += _names(told)
        versions.add(told["metadata"]["resourceVersion"])
        token = told["metadata"].get("continue", "")
        if not token:
            break
        assert len(told["items"]) == 2
    assert found == names
    assert len(versions) == 1


async def test_a_page_without_selectors_says_how_many_remain(api: ApiDoor) -> None:
    await _five(api)
    everything = (await api.get(api.core("configmaps"))).object()
    told = (await api.get(f"{api.core('configmaps')}?limit=2")).object()
    assert told["metadata"]["remainingItemCount"] == len(everything["items"]) - 2


async def test_a_page_with_selectors_does_not_say_how_many_remain(api: ApiDoor) -> None:
    await _five(api)
    told = (await api.get(_path(api, "&limit=2"))).object()
    assert "remainingItemCount" not in told["metadata"]


async def test_later_pages_show_the_list_as_it_was(api: ApiDoor) -> None:
    names = await _five(api)
    first = (await api.get(_path(api, "&limit=2"))).object()
    await api.delete(api.core("configmaps", "n3"))
    await made_config_map(api, "n9", labels={"test": "1"})
    token = first["metadata"]["continue"]
    rest = (await api.get(_path(api, f"&continue={token}"))).object()
    assert _names(rest) == names[2:]


async def test_a_token_of_nobody_is_refused(api: ApiDoor) -> None:
    answer = await api.get(_path(api, "&limit=2&continue=nonsense"))
    message = answer.refused(400, "BadRequest")
    assert message.startswith("invalid continue token: continue key is not valid: ")


async def test_a_token_goes_with_no_version(api: ApiDoor) -> None:
    await _five(api)
    first = (await api.get(_path(api, "&limit=2"))).object()
    token, version = first["metadata"]["continue"], first["metadata"]["resourceVersion"]
    answer = await api.get(_path(api, f"&continue={token}&resourceVersion={version}"))
    message = answer.refused(400, "BadRequest")
    assert message == "specifying resource version is not allowed when using continue"


async def test_an_exact_version_is_the_list_of_then(api: ApiDoor) -> None:
    names = await _five(api)
    version = (await api.get(_path(api))).object()["metadata"]["resourceVersion"]
    await api.delete(api.core("configmaps", "n0"))
    query = f"&resourceVersion={version}&resourceVersionMatch=Exact"
    told = (await api.get(_path(api, query))).object()
    assert _names(told) == names
    assert told["metadata"]["resourceVersion"] == version


async def test_not_older_than_a_version_may_be_newer(api: ApiDoor) -> None:
    names = await _five(api)
    version = (await api.get(_path(api))).object()["metadata"]["resourceVersion"]
    query = f"&resourceVersion={version}&resourceVersionMatch=NotOlderThan"
    told = (await api.get(_path(api, query))).object()
    assert _names(told) == names
    assert int(told["metadata"]["resourceVersion"]) >= int(version)


async def test_any_version_will_do(api: ApiDoor) -> None:
    await _five(api)
    told = (await api.get(_path(api, "&resourceVersion=0"))).object()
    assert int(told["metadata"]["resourceVersion"]) > 0


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            "&resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
            "resourceVersion is provided",
        ),
        (
            "&resourceVersion=0&resourceVersionMatch=Exact",
            'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for '
            'resourceVersion "0"',
        ),
        (
            "&resourceVersion=1&resourceVersionMatch=Some",
            'resourceVersionMatch: Unsupported value: "Some": supported values: "Exact", '
            '"NotOlderThan", ""',
        ),
        (
            "&sendInitialEvents=true",
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        ),
    ],
)
async def test_contradictions_are_refused(api: ApiDoor, query: str, words: str) -> None:
    message = (await api.get(_path(api, query))).refused(422, "Invalid")
    assert message == f'ListOptions.meta.k8s.io "" is invalid: {words}'


async def test_a_version_that_is_no_number_is_refused(api: ApiDoor) -> None:
    answer = await api.get(_path(api, "&resourceVersion=x&resourceVersionMatch=NotOlderThan"))
    assert "x" in answer.json["message"]
    assert answer.status in (400, 422, 500)


async def test_a_list_from_the_future_is_refused(api: ApiDoor) -> None:
    version = (await api.get(_path(api))).object()["metadata"]["resourceVersion"]
    query = f"&resourceVersion={int(version) + 1_000_000}&resourceVersionMatch=NotOlderThan"
    answer = await api.get(_path(api, query))
    message = answer.refused(504, "Timeout")
    assert "Too large resource version" in message
    assert answer.json["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


async def test_metadata_alone_can_be_had(api: ApiDoor) -> None:
    names = await _five(api)
    told = (await api.get(_path(api), accept=METADATA_LIST)).object()
    assert (told["kind"], told["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert _names(told) == names
    assert all(set(item) == {"kind", "apiVersion", "metadata"} for item in told["items"])


async def test_a_list_of_all_namespaces_has_this_one(api: ApiDoor) -> None:
    await _five(api)
    told = (await api.get("/api/v1/configmaps?labelSelector=test")).object()
    mine = [item for item in told["items"] if item["metadata"]["namespace"] == api.namespace]
    assert len(mine) == 5


async def test_a_namespace_that_is_not_there_has_an_empty_list(api: ApiDoor) -> None:
    told = (await api.get("/api/v1/namespaces/none-of-them/configmaps")).object()
    assert told["items"] == []


async def test_a_version_that_was_forgotten_is_gone(api: ApiDoor) -> None:
    answer = await api.get(_path(api, "&resourceVersion=1&resourceVersionMatch=Exact"))
    if answer.status == 200:
        pytest.skip("this server has forgotten nothing yet")
    message = answer.refused(410, "Expired")
    assert message == "The resourceVersion for the provided list is too old."


async def test_a_page_that_was_forgotten_can_be_gone_on_from_otherwise(api: ApiDoor) -> None:
    names = await _five(api)
    first = (await api.get(_path(api, "&limit=2"))).object()
    token = _of_version(first["metadata"]["continue"], 1)
    answer = await api.get(_path(api, f"&limit=2&continue={token}"))
    if answer.status == 200:
        pytest.skip("this server has forgotten nothing yet")
    message = answer.refused(410, "Expired")
    assert message.startswith("The provided continue parameter is too old to display a consistent")
    rest = (await api.get(_path(api, f"&continue={answer.json['metadata']['continue']}"))).object()
    assert _names(rest) == names[2:]


def _of_version(token: str, version: int) -> str:
    """A token as if the list had begun at another version."""
    told = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    body = json.dumps({**told, "rv": version}).encode()
    return base64.urlsafe_b64encode(body).decode().rstrip("=")
