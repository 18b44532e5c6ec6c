"""Requests that no resource answers, and how the server is asked whether it lives."""

import pytest

from tests.conformance.api_server.door import METADATA, ApiDoor
from tests.conformance.api_server.objects import config_map, made_config_map

NO_RESOURCE = "the server could not find the requested resource"
NO_METHOD = "the server does not allow this method on the requested resource"


@pytest.mark.parametrize("path", ["/nope", "/apis/nope", "/apis/nope/v1", "/openapi"])
async def test_a_path_of_nobody_is_not_found(api: ApiDoor, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.text) == (404, "404 page not found\n")
    assert answer.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2",
        "/api/v1/nope",
        "/apis/resource.k8s.io/v9",
        "/apis/resource.k8s.io/v1/nope",
        "/apis/resource.k8s.io/v1/namespaces/default/nope",
        "/api/v1/namespaces/default/configmaps/a/nope",
    ],
)
async def test_a_resource_of_nobody_is_not_found(api: ApiDoor, path: str) -> None:
    answer = await api.get(path)
    assert answer.refused(404, "NotFound") == NO_RESOURCE
    assert answer.json["details"] == {}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "configmaps"),
        ("PATCH", "configmaps"),
        ("POST", "configmaps/one"),
        ("POST", "pods/one/status"),
        ("DELETE", "pods/one/status"),
        ("GET", "pods/one/binding"),
    ],
)
async def test_a_method_of_nobody_is_not_allowed(api: ApiDoor, method: str, path: str) -> None:
    answer = await api.call(method, api.core(path), {})
    assert answer.refused(405, "MethodNotAllowed") == NO_METHOD


async def test_a_type_that_is_not_spoken_is_refused(api: ApiDoor) -> None:
    answer = await api.post(api.core("configmaps"), "x", content_type="text/plain")
    message = answer.refused(415, "UnsupportedMediaType")
    assert message.startswith(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml"
    )


async def test_an_answer_in_an_unknown_type_cannot_be_had(api: ApiDoor) -> None:
    message = (await api.get("/api/v1/nodes", accept="text/html")).refused(406, "NotAcceptable")
    assert "application/json, application/yaml" in message


async def test_a_type_with_a_fallback_can_be_had(api: ApiDoor) -> None:
    answer = await api.get("/api/v1/nodes", accept="text/html, application/json;q=0.5")
    assert answer.object()["kind"] == "NodeList"


async def test_one_object_can_be_had_as_metadata(api: ApiDoor) -> None:
    first = await made_config_map(api, data={"a": "1"})
    told = (await api.get(api.core("configmaps", "one"), accept=METADATA)).object()
    assert told == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": first["metadata"],
    }


async def test_a_body_over_three_megabytes_is_refused(api: ApiDoor) -> None:
    body = config_map("one", {"a": "x" * (3 << 20)})
    answer = await api.post(api.core("configmaps"), body)
    message = answer.refused(413, "RequestEntityTooLarge")
    assert message == "Request entity too large: limit is 3145728"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_the_server_says_that_it_lives(api: ApiDoor, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.text) == (200, "ok")


async def test_a_text_where_a_number_belongs_is_refused(api: ApiDoor) -> None:
    message = (await api.get(f"{api.core('configmaps')}?limit=x")).refused(400, "BadRequest")
    assert message == 'strconv.ParseInt: parsing "x": invalid syntax'
