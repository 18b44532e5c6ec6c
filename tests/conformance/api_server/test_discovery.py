"""What a client can learn of the server before it asks for objects."""

import json
import re

import pytest

from tests.conformance.api_server.door import AGGREGATED, ApiDoor, Object
from tests.conformance.api_server.objects import CLAIMS

GROUPS = {
    "admissionregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "coordination.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
}
EVERY_VERB = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


async def test_the_version_is_kubernetes_1_36(api: ApiDoor) -> None:
    told = (await api.get("/version")).object()
    assert (told["major"], told["minor"]) == ("1", "36")
    assert re.match(r"v1\.36\.\d+", told["gitVersion"])


async def test_the_core_has_one_version(api: ApiDoor) -> None:
    told = (await api.get("/api")).object()
    assert (told["kind"], told["versions"]) == ("APIVersions", ["v1"])


async def test_groups_are_listed_with_their_versions(api: ApiDoor) -> None:
    told = (await api.get("/apis")).object()
    assert (told["kind"], told["apiVersion"]) == ("APIGroupList", "v1")
    found = {group["name"]: group["preferredVersion"] for group in told["groups"]}
    assert set(found) >= GROUPS
    assert found["resource.k8s.io"] == {"groupVersion": CLAIMS, "version": "v1"}


@pytest.mark.parametrize("slash", ["", "/"])
async def test_a_group_tells_of_itself(api: ApiDoor, slash: str) -> None:
    told = (await api.get(f"/apis/resource.k8s.io{slash}")).object()
    version = {"groupVersion": CLAIMS, "version": "v1"}
    assert told == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "resource.k8s.io",
        "versions": [version],
        "preferredVersion": version,
    }


async def _resources(api: ApiDoor, path: str) -> dict[str, Object]:
    told = (await api.get(path)).object()
    assert told["kind"] == "APIResourceList"
    return {resource["name"]: resource for resource in told["resources"]}


async def test_resources_are_listed_with_verbs_and_short_names(api: ApiDoor) -> None:
    found = await _resources(api, "/api/v1")
    assert found["pods"] == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": EVERY_VERB,
        "shortNames": ["po"],
        "categories": ["all"],
        "storageVersionHash": "xPOwRZ+Yhw8=",
    }
    short = {name: found[name].get("shortNames") for name in found if "/" not in name}
    assert {name: short[name] for name in ("nodes", "events", "configmaps", "namespaces")} == {
        "nodes": ["no"],
        "events": ["ev"],
        "configmaps": ["cm"],
        "namespaces": ["ns"],
    }


async def test_subresources_are_listed(api: ApiDoor) -> None:
    found = await _resources(api, "/api/v1")
    status = {"singularName": "", "namespaced": True, "kind": "Pod"}
    verbs = ["get", "patch", "update"]
    assert found["pods/status"] == {"name": "pods/status", **status, "verbs": verbs}
    assert found["pods/log"] == {"name": "pods/log", **status, "verbs": ["get"]}
    eviction = found["pods/eviction"]
    assert (eviction["group"], eviction["kind"]) == ("policy", "Eviction")
    assert found["serviceaccounts/token"]["kind"] == "TokenRequest"
    assert found["namespaces/finalize"]["verbs"] == ["update"]


async def test_resources_of_dra_are_listed(api: ApiDoor) -> None:
    found = await _resources(api, "/apis/resource.k8s.io/v1")
    scopes = {name: resource["namespaced"] for name, resource in found.items()}
    assert scopes == {
        "deviceclasses": False,
        "resourceslices": False,
        "resourceclaims": True,
        "resourceclaims/status": True,
        "resourceclaimtemplates": True,
    }


async def test_all_groups_can_be_had_in_one_document(api: ApiDoor) -> None:
    answer = await api.get("/apis", accept=f"{AGGREGATED},application/json")
    told = answer.object()
    assert answer.headers["Content-Type"] == AGGREGATED
    assert (told["kind"], told["apiVersion"]) == (
        "APIGroupDiscoveryList",
        "apidiscovery.k8s.io/v2",
    )
    found = {group["metadata"]["name"]: group["versions"] for group in told["items"]}
    assert set(found) >= GROUPS
    (version,) = found["resource.k8s.io"]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    claims = next(item for item in version["resources"] if item["resource"] == "resourceclaims")
    kind = {"group": "", "version": "", "kind": "ResourceClaim"}
    assert claims == {
        "resource": "resourceclaims",
        "responseKind": kind,
        "scope": "Namespaced",
        "singularResource": "resourceclaim",
        "verbs": EVERY_VERB,
        "subresources": [
            {"subresource": "status", "responseKind": kind, "verbs": ["get", "patch", "update"]}
        ],
    }


async def test_the_core_can_be_had_in_one_document(api: ApiDoor) -> None:
    told = (await api.get("/api", accept=AGGREGATED)).object()
    (group,) = told["items"]
    assert group["metadata"] == {}
    names = {item["resource"] for item in group["versions"][0]["resources"]}
    assert {"pods", "nodes", "events"} <= names


async def test_an_unknown_aggregated_version_falls_back(api: ApiDoor) -> None:
    newer = AGGREGATED.replace("v=v2", "v=v9")
    told = (await api.get("/apis", accept=f"{newer},application/json")).object()
    assert told["kind"] == "APIGroupList"
    (await api.get("/apis", accept=newer)).refused(406, "NotAcceptable")


async def _schemas(api: ApiDoor, version: str) -> Object:
    index = (await api.get("/openapi/v3")).object()
    url = index["paths"][version]["serverRelativeURL"]
    assert url.startswith(f"/openapi/v3/{version}?hash=")
    told = (await api.get(url)).object()
    assert told["openapi"].startswith("3.0")
    return told


async def test_schemas_say_how_lists_are_merged(api: ApiDoor) -> None:
    told = await _schemas(api, "api/v1")
    spec = told["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]
    containers = spec["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


async def test_schemas_name_their_kinds(api: ApiDoor) -> None:
    told = await _schemas(api, f"apis/{CLAIMS}")
    kind = {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}
    schema = told["components"]["schemas"]["io.k8s.api.resource.v1.ResourceClaim"]
    assert kind in schema["x-kubernetes-group-version-kind"]


async def test_patches_are_told_to_validate_fields(api: ApiDoor) -> None:
    told = await _schemas(api, f"apis/{CLAIMS}")
    path = f"/apis/{CLAIMS}/namespaces/{{namespace}}/resourceclaims/{{name}}"
    patch = told["paths"][path]["patch"]
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "ResourceClaim"
    assert "application/apply-patch+yaml" in patch["requestBody"]["content"]


async def test_references_in_schemas_lead_somewhere(api: ApiDoor) -> None:
    for version in ("api/v1", f"apis/{CLAIMS}", "apis/coordination.k8s.io/v1"):
        told = await _schemas(api, version)
        found = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(told)))
        assert found <= set(told["components"]["schemas"])
