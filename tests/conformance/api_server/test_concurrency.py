"""Many writers at once: nothing is lost, and of two that contradict each other one wins."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from tests.conformance.api_server.door import JSON_PATCH, Answer, ApiDoor
from tests.conformance.api_server.objects import config_map, made_config_map

WRITERS = 20


async def _at_once(requests: Iterable[Coroutine[Any, Any, Answer]]) -> list[Answer]:
    return list(await asyncio.gather(*requests))


async def test_one_of_many_updates_of_a_version_wins(api: ApiDoor) -> None:
    first = await made_config_map(api)
    path = api.core("configmaps", "one")
    bodies = [{**first, "data": {"writer": str(number)}} for number in range(WRITERS)]
    answers = await _at_once(api.put(path, body) for body in bodies)
    assert sorted(answer.status for answer in answers) == [200] + [409] * (WRITERS - 1)
    (winner,) = [answer.json for answer in answers if answer.status == 200]
    assert (await api.get(path)).object() == winner


async def test_patches_of_different_fields_all_land(api: ApiDoor) -> None:
    await made_config_map(api)
    path = api.core("configmaps", "one")
    patches = [{"data": {f"k{number}": "1"}} for number in range(WRITERS)]
    answers = await _at_once(api.patch(path, patch) for patch in patches)
    landed = [number for number, answer in enumerate(answers) if answer.status == 200]
    # A real server tries again five times, then says that it was a conflict.
    assert {answer.status for answer in answers} <= {200, 409}
    told = (await api.get(path)).object()
    assert set(told["data"]) == {f"k{number}" for number in landed}


async def test_one_of_many_creations_of_a_name_wins(api: ApiDoor) -> None:
    answers = await _at_once(
        api.post(api.core("configmaps"), config_map("one")) for _ in range(WRITERS)
    )
    assert sorted(answer.status for answer in answers) == [201] + [409] * (WRITERS - 1)


async def test_one_of_many_guarded_patches_wins(api: ApiDoor) -> None:
    await made_config_map(api, data={"holder": ""})
    path = api.core("configmaps", "one")

    def taking(number: int) -> list[dict[str, str]]:
        test = {"op": "test", "path": "/data/holder", "value": ""}
        return [test, {"op": "replace", "path": "/data/holder", "value": str(number)}]

    answers = await _at_once(
        api.patch(path, taking(number), JSON_PATCH) for number in range(WRITERS)
    )
    assert [answer.status for answer in answers].count(200) == 1
    assert {answer.status for answer in answers} <= {200, 409, 422}


async def test_one_of_many_deletions_of_an_identity_wins(api: ApiDoor) -> None:
    first = await made_config_map(api)
    path = api.core("configmaps", "one")
    options = {"preconditions": {"uid": first["metadata"]["uid"]}}
    answers = await _at_once(api.delete(path, options) for _ in range(5))
    assert sorted(answer.status for answer in answers) == [200, 404, 404, 404, 404]
