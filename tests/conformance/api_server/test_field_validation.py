"""Unknown, repeated and wrong fields."""

import pytest

from tests.conformance.api_server.door import ApiDoor
from tests.conformance.api_server.objects import config_map, made_config_map, pod

UNKNOWN = {**config_map("one"), "extra": 1}


async def test_strict_refuses_unknown_fields(api: ApiDoor) -> None:
    answer = await api.post(f"{api.core('configmaps')}?fieldValidation=Strict", UNKNOWN)
    message = answer.refused(400, "BadRequest")
    assert message == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'unknown field "extra"'
    )


async def test_strict_names_the_whole_path(api: ApiDoor) -> None:
    body = pod("one")
    body["spec"]["containers"][0]["imagee"] = "x"
    answer = await api.post(f"{api.core('pods')}?fieldValidation=Strict", body)
    message = answer.refused(400, "BadRequest")
    assert message.endswith('strict decoding error: unknown field "spec.containers[0].imagee"')


async def test_strict_names_all_unknown_fields(api: ApiDoor) -> None:
    body = {**UNKNOWN, "more": 1}
    answer = await api.post(f"{api.core('configmaps')}?fieldValidation=Strict", body)
    message = answer.refused(400, "BadRequest")
    assert 'unknown field "extra"' in message
    assert 'unknown field "more"' in message


async def test_strict_refuses_repeated_fields(api: ApiDoor) -> None:
    body = '{"metadata": {"name": "one"}, "data": {"a": "1", "a": "2"}}'
    answer = await api.post(f"{api.core('configmaps')}?fieldValidation=Strict", body)
    message = answer.refused(400, "BadRequest")
    assert message.endswith('strict decoding error: duplicate field "data.a"')


async def test_a_warning_is_the_default(api: ApiDoor) -> None:
    answer = await api.post(api.core("configmaps"), UNKNOWN)
    assert "extra" not in answer.object(201)
    assert answer.headers["Warning"] == '299 - "unknown field \\"extra\\""'


async def test_ignore_says_nothing(api: ApiDoor) -> None:
    answer = await api.post(f"{api.core('configmaps')}?fieldValidation=Ignore", UNKNOWN)
    assert "extra" not in answer.object(201)
    assert "Warning" not in answer.headers


async def test_another_value_is_refused(api: ApiDoor) -> None:
    answer = await api.post(f"{api.core('configmaps')}?fieldValidation=Loose", UNKNOWN)
    message = answer.refused(422, "Invalid")
    assert message == (
        'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Loose": '
        'supported values: "", "Ignore", "Strict", "Warn"'
    )


async def test_names_of_fields_have_a_case(api: ApiDoor) -> None:
    body = {**config_map("one"), "Data": {"a": "1"}}
    answer = await api.post(f"{api.core('configmaps')}?fieldValidation=Strict", body)
    assert 'unknown field "Data"' in answer.refused(400, "BadRequest")


@pytest.mark.parametrize("content_type", ["merge-patch", "strategic-merge-patch"])
async def test_strict_holds_for_patches(api: ApiDoor, content_type: str) -> None:
    await made_config_map(api)
    path = f"{api.core('configmaps', 'one')}?fieldValidation=Strict"
    answer = await api.patch(path, {"extra": 1}, f"application/{content_type}+json")
    message = answer.refused(422, "Invalid")
    assert message.endswith('strict decoding error: unknown field "extra"')
    assert answer.causes == [("FieldValueInvalid", "patch")]


async def test_strict_holds_for_apply(api: ApiDoor) -> None:
    path = f"{api.core('configmaps', 'one')}?fieldManager=a&fieldValidation=Strict"
    answer = await api.apply(path, UNKNOWN)
    assert answer.status in (400, 500)
    assert "extra" in answer.json["message"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("data", "text"), ("data", ["list"]), ("immutable", "yes")],
)
async def test_a_wrong_type_is_refused(api: ApiDoor, field: str, value: object) -> None:
    answer = await api.post(api.core("configmaps"), {**config_map("one"), field: value})
    message = answer.refused(400, "BadRequest")
    assert message.startswith('ConfigMap in version "v1" cannot be handled as a ConfigMap: ')
    assert f".{field}" in message


async def test_a_number_where_text_belongs_is_refused(api: ApiDoor) -> None:
    answer = await api.post(api.core("configmaps"), {**config_map("one"), "data": {"a": 1}})
    message = answer.refused(400, "BadRequest")
    assert "json: cannot unmarshal number into Go struct field ConfigMap.data of type string" in (
        message
    )


async def test_a_quantity_must_be_one(api: ApiDoor) -> None:
    body = pod("one")
    body["spec"]["containers"][0]["resources"] = {"limits": {"memory": "ten"}}
    message = (await api.post(api.core("pods"), body)).refused(400, "BadRequest")
    assert message == (
        'Pod in version "v1" cannot be handled as a Pod: quantities must match the regular '
        "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )


@pytest.mark.parametrize("body", ["", "{", "[]", "text"])
async def test_a_body_that_is_no_object_is_refused(api: ApiDoor, body: str) -> None:
    answer = await api.post(api.core("configmaps"), body)
    assert answer.status == 400, answer.text
