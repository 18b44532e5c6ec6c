"""Requests that do everything but change something."""

from tests.conformance.api_server.door import ApiDoor
from tests.conformance.api_server.objects import config_map, made_config_map


async def test_a_dry_create_answers_and_stores_nothing(api: ApiDoor) -> None:
    answer = await api.post(f"{api.core('configmaps')}?dryRun=All", config_map("one"))
    metadata = answer.object(201)["metadata"]
    assert metadata["uid"]
    assert "resourceVersion" not in metadata
    (await api.get(api.core("configmaps", "one"))).refused(404, "NotFound")


async def test_a_dry_update_answers_and_stores_nothing(api: ApiDoor) -> None:
    first = await made_config_map(api, data={"a": "1"})
    path = api.core("configmaps", "one")
    told = (await api.put(f"{path}?dryRun=All", {**first, "data": {"a": "2"}})).object()
    assert told["data"] == {"a": "2"}
    assert told["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert (await api.get(path)).object() == first


async def test_a_dry_patch_answers_and_stores_nothing(api: ApiDoor) -> None:
    first = await made_config_map(api, data={"a": "1"})
    path = api.core("configmaps", "one")
    told = (await api.patch(f"{path}?dryRun=All", {"data": {"b": "2"}})).object()
    assert told["data"] == {"a": "1", "b": "2"}
    assert (await api.get(path)).object() == first


async def test_a_dry_delete_answers_and_deletes_nothing(api: ApiDoor) -> None:
    first = await made_config_map(api)
    path = api.core("configmaps", "one")
    assert (await api.delete(f"{path}?dryRun=All")).json["status"] == "Success"
    assert (await api.get(path)).object() == first


async def test_a_dry_deletion_of_all_deletes_nothing(api: ApiDoor) -> None:
    first = await made_config_map(api)
    (await api.delete(f"{api.core('configmaps')}?dryRun=All")).object()
    assert (await api.get(api.core("configmaps", "one"))).object() == first


async def test_a_dry_create_of_what_exists_is_refused(api: ApiDoor) -> None:
    await made_config_map(api)
    answer = await api.post(f"{api.core('configmaps')}?dryRun=All", config_map("one"))
    answer.refused(409, "AlreadyExists")


async def test_another_value_of_dry_run_is_refused(api: ApiDoor) -> None:
    answer = await api.post(f"{api.core('configmaps')}?dryRun=Some", config_map("one"))
    message = answer.refused(422, "Invalid")
    assert message == (
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: '
        'supported values: "All"'
    )
