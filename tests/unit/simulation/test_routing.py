"""From URLs to what they ask for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.simulation.api_server.routing import is_of_known_group, is_resource_path, route
from casaba.simulation.api_server.statuses import ApiError

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", "list pods"),
        ("GET", "/api/v1/pods/", "list pods"),
        ("GET", "/api/v1/namespaces", "list namespaces"),
        ("GET", "/api/v1/namespaces/ns", "get namespaces/ns"),
        ("PUT", "/api/v1/namespaces/ns/finalize", "update namespaces/ns finalize"),
        ("PATCH", "/api/v1/namespaces/ns/status", "patch namespaces/ns status"),
        ("POST", "/api/v1/namespaces/ns/pods", "create ns/pods"),
        ("DELETE", "/api/v1/namespaces/ns/pods", "deletecollection ns/pods"),
        ("POST", "/api/v1/namespaces/ns/pods/a/binding", "create ns/pods/a binding"),
        ("GET", "/api/v1/namespaces/ns/pods/a/log", "get ns/pods/a log"),
        ("GET", CLAIMS, "list ns/resourceclaims"),
        ("DELETE", f"{CLAIMS}/a", "delete ns/resourceclaims/a"),
        ("PUT", f"{CLAIMS}/a/status", "update ns/resourceclaims/a status"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "create tokenreviews"),
    ],
)
def test_paths_and_verbs(method: str, path: str, expected: str) -> None:
    found = route(method, path, {})
    place = [found.namespace, found.resource.plural, found.name]
    told = f"{found.verb} {'/'.join(filter(None, place))} {found.subresource}"
    assert told.strip() == expected


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward", "ephemeralcontainers"])
def test_what_a_simulated_pod_cant_do_is_said_in_a_sentence(subresource: str) -> None:
    with pytest.raises(ApiError, match=f"pods/{subresource} is not part of the simulated") as told:
        route("POST", f"/api/v1/namespaces/ns/pods/a/{subresource}", {})
    assert told.value.code == 501


def test_a_list_can_be_a_watch() -> None:
    assert route("GET", CLAIMS, {"watch": "true"}).verb == "watch"
    assert route("GET", CLAIMS, {"watch": "false"}).verb == "list"
    assert route("GET", f"{CLAIMS}/a", {"watch": "true"}).verb == "get"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/pods/a", 404),
        ("GET", "/api/v1/namespaces/ns/nodes", 404),
        ("GET", f"{CLAIMS}/a/scale", 404),
        ("GET", f"{CLAIMS}/a/status/more", 404),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews", 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("GET", "/api/v1/namespaces/ns/pods/a/binding", 405),
        ("POST", f"{CLAIMS}/a/status", 405),
    ],
)
def test_what_is_not_served(method: str, path: str, code: int) -> None:
    with pytest.raises(ApiError) as refused:
        route(method, path, {})
    assert refused.value.code == code


def test_groups_that_are_known() -> None:
    assert [is_of_known_group(path) for path in ("/api/v2", "/apis/resource.k8s.io/v9/x")] == [
        True,
        True,
    ]
    assert [is_of_known_group(path) for path in ("/apis/example.com/v1", "/nope")] == [False, False]


parts = st.sampled_from(
    ["api", "apis", "v1", "namespaces", "pods", "status", "resource.k8s.io", "a", "", "nodes"]
)


@given(st.lists(parts, max_size=9), st.sampled_from(["GET", "PUT", "POST", "TRACE"]))
def test_any_path_is_a_route_or_a_refusal(pieces: list[str], method: str) -> None:
    path = "/" + "/".join(pieces)
    try:
        found = route(method, path, {})
    except ApiError as error:
        refused = error
        assert refused.code in (404, 405, 501)
    else:
        assert is_resource_path(path)
        assert found.resource.namespaced or not found.namespace
