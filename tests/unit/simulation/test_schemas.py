"""The schemas know every kind that the server serves, and how its lists are merged."""

import json

import pytest

from casaba.simulation.api_server import schemas
from casaba.simulation.api_server.resources import RESOURCES, ResourceInfo, find_resource


@pytest.mark.parametrize("info", RESOURCES, ids=lambda info: info.kind)
def test_every_kind_has_a_schema(info: ResourceInfo) -> None:
    schema = schemas.of(info)
    assert schema.name == info.kind
    assert {"apiVersion", "kind", "metadata"} <= schema.properties.keys()


@pytest.mark.parametrize(
    "kind",
    [
        ("policy/v1", "Eviction"),
        ("authentication.k8s.io/v1", "TokenRequest"),
        ("v1", "Binding"),
        ("v1", "DeleteOptions"),
    ],
)
def test_what_only_subresources_take_has_a_schema_too(kind: tuple[str, str]) -> None:
    assert schemas.knows(*kind)
    assert schemas.of_kind(*kind).name == kind[1]


def test_containers_are_merged_by_name() -> None:
    containers = schemas.of_kind("v1", "Pod").properties["spec"].properties["containers"]
    assert (containers.type, containers.list_type, containers.list_keys) == (
        "list",
        "map",
        ("name",),
    )
    assert containers.merge_key == "name"
    assert "merge" in containers.patch_strategies


def test_a_reference_may_say_more_about_its_use_than_about_its_type() -> None:
    status = schemas.of_kind("v1", "Pod").properties["status"]
    assert status.default == {}
    assert status.properties["conditions"].list_keys == ("type",)


def test_openapi_is_closed_under_references_and_holds_no_prose() -> None:
    for api_version in {info.api_version for info in RESOURCES}:
        document = schemas.openapi(api_version)
        text = json.dumps(document)
        assert '"description"' not in text
        wanted = {part.split('"')[0] for part in text.split(schemas.REFERENCE)[1:]}
        assert wanted <= document.keys()


def test_an_object_of_which_nothing_is_told_is_what_go_writes() -> None:
    slice_info = find_resource("resource.k8s.io", "v1", "resourceslices")
    assert slice_info is not None
    zero = schemas.zero_object(schemas.of(slice_info))
    assert zero["spec"] == {
        "driver": "",
        "pool": {"name": "", "generation": 0, "resourceSliceCount": 0},
    }
    assert schemas.zero_object(schemas.of_kind("v1", "Pod"))["spec"] == {"containers": None}
