"""Discovery and OpenAPI tell of every kind that the server has."""

import json

import pytest

from casaba.simulation.api_server.discovery import discovery_document, version_path
from casaba.simulation.api_server.media_types import accepted_types
from casaba.simulation.api_server.openapi import openapi_document
from casaba.simulation.api_server.resources import RESOURCES, ResourceInfo
from casaba.simulation.api_server.statuses import ApiError

JSON = "application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize("info", RESOURCES, ids=lambda info: info.plural)
def test_every_kind_is_in_both_forms_of_discovery(info: ResourceInfo) -> None:
    plain = discovery_document(version_path(info), JSON)
    assert plain is not None
    names = {resource["name"] for resource in plain["resources"]}
    assert {info.plural, *(f"{info.plural}/{name}" for name in info.subresources)} <= names
    root = discovery_document("/apis" if info.group else "/api", AGGREGATED)
    assert root is not None
    (group,) = [item for item in root["items"] if item["metadata"].get("name", "") == info.group]
    resources = {item["resource"] for item in group["versions"][0]["resources"]}
    assert info.plural in resources


@pytest.mark.parametrize("path", ["/", "/nope", "/apis/nope", "/apis/v1", "/api/v1/pods"])
def test_other_paths_are_left_to_others(path: str) -> None:
    assert discovery_document(path, JSON) is None
    assert openapi_document(path) is None


def test_the_best_type_comes_first() -> None:
    found = accepted_types("text/html;q=0.1, */*;q=0.5, application/json;as=Table;v=v1")
    assert [clause.type for clause in found] == ["application/json", "*/*", "text/html"]
    assert found[0].form == ("Table", "", "v1")
    assert [clause.type for clause in accepted_types("")] == ["*/*"]
    assert accepted_types("text/html;q=x")[0].weight == 0


def test_what_nobody_offers_is_not_acceptable() -> None:
    with pytest.raises(ApiError) as refused:
        discovery_document("/apis", "text/html")
    assert refused.value.code == 406


@pytest.mark.parametrize("info", RESOURCES, ids=lambda info: info.plural)
def test_every_kind_has_a_schema_and_paths(info: ResourceInfo) -> None:
    body = openapi_document(f"/openapi/v3{version_path(info)}")
    assert body is not None
    document = json.loads(body)
    kind = {"group": info.group, "version": info.version, "kind": info.kind}
    schemas = document["components"]["schemas"].values()
    assert any(kind in schema.get("x-kubernetes-group-version-kind", ()) for schema in schemas)
    methods = {
        method
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if operation["x-kubernetes-group-version-kind"] == kind
    }
    wanted = {"create": "post", "update": "put", "patch": "patch", "get": "get"}
    assert methods >= {method for verb, method in wanted.items() if verb in info.verbs}


def test_the_old_document_is_empty_in_both_encodings() -> None:
    assert json.loads(openapi_document("/openapi/v2") or b"")["swagger"] == "2.0"
    mime = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    assert (openapi_document("/openapi/v2", mime) or b"").startswith(b"\n\x032.0\x12")
