"""Reads and writes over HTTPS: what the server does beside the rules of single kinds."""

import asyncio
import io

import pytest

from casaba.errors import InvalidInput
from casaba.simulation.api_server.server import SimulatedApiServer
from tests.component.api_server.conftest import Door, door_of

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
MERGE = "application/merge-patch+json"


async def test_an_object_lives(door: Door) -> None:
    made = await door.create(MAPS, "a", data={"k": "v"})
    assert made["metadata"]["uid"]
    assert made["metadata"]["creationTimestamp"].endswith("Z")
    assert (await door.ask("GET", f"{MAPS}/a")).json == made
    made["data"] = {"k": "w"}
    updated = await door.ask("PUT", f"{MAPS}/a", made)
    assert updated.json["data"] == {"k": "w"}
    assert int(updated.json["metadata"]["resourceVersion"]) > int(
        made["metadata"]["resourceVersion"]
    )
    gone = await door.ask("DELETE", f"{MAPS}/a")
    assert (gone.code, gone.json["status"]) == (200, "Success")
    assert (await door.ask("GET", f"{MAPS}/a")).code == 404


async def test_a_stale_update_is_told_to_start_over(door: Door) -> None:
    made = await door.create(MAPS, "a")
    await door.ask("PATCH", f"{MAPS}/a", {"data": {"k": "v"}}, content_type=MERGE)
    refused = await door.ask("PUT", f"{MAPS}/a", made)
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")
    assert refused.json["message"] == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def test_an_update_without_a_version_takes_what_is_there(door: Door) -> None:
    made = await door.create(MAPS, "a")
    del made["metadata"]["resourceVersion"]
    assert (await door.ask("PUT", f"{MAPS}/a", {**made, "data": {"k": "v"}})).code == 200


async def test_a_name_is_generated_and_stays_unique(door: Door) -> None:
    named = [
        (await door.ask("POST", MAPS, {"metadata": {"generateName": "a-"}})).json["metadata"]
        for _ in range(20)
    ]
    assert len({each["name"] for each in named}) == 20
    assert all(len(each["name"]) == 7 and each["name"].startswith("a-") for each in named)


async def test_a_dry_run_does_everything_but_the_change(door: Door) -> None:
    made = await door.ask("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "a"}})
    assert (made.code, "resourceVersion" in made.json["metadata"]) == (201, False)
    assert (await door.ask("GET", f"{MAPS}/a")).code == 404
    await door.create(MAPS, "a")
    assert (await door.ask("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "a"}})).code == 409
    changed = await door.ask(
        "PATCH", f"{MAPS}/a?dryRun=All", {"data": {"k": "v"}}, content_type=MERGE
    )
    assert changed.json["data"] == {"k": "v"}
    assert (await door.ask("DELETE", f"{MAPS}/a?dryRun=All")).code == 200
    assert "data" not in (await door.ask("GET", f"{MAPS}/a")).json


async def test_the_url_and_the_body_must_agree(door: Door) -> None:
    await door.create(MAPS, "a")
    other_name = await door.ask("PUT", f"{MAPS}/a", {"metadata": {"name": "b"}})
    assert other_name.json["message"] == (
        "the name of the object (b) does not match the name on the URL (a)"
    )
    body = {"metadata": {"name": "c", "namespace": "elsewhere"}}
    other_namespace = await door.ask("POST", MAPS, body)
    assert (other_namespace.code, other_namespace.json["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/nothing/here", 404),
        ("GET", "/apis/example.com/v1/things", 404),
        ("GET", "/api/v1/things", 404),
        ("GET", "/api/v1/pods/a", 404),
        ("GET", f"{MAPS}/a/status", 404),
        ("POST", f"{MAPS}/a", 405),
        ("POST", "/api/v1/configmaps", 405),
        ("PUT", MAPS, 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("OPTIONS", MAPS, 405),
    ],
)
async def test_what_there_is_not(door: Door, method: str, path: str, code: int) -> None:
    assert (await door.ask(method, path)).code == code


async def test_bodies_of_other_kinds_are_refused(door: Door) -> None:
    body = {"metadata": {"name": "a"}}
    unknown = await door.ask("POST", MAPS, body, content_type="text/html")
    assert (unknown.code, unknown.json["reason"]) == (415, "UnsupportedMediaType")
    assert (await door.ask("PATCH", f"{MAPS}/a", body)).code == 415
    large = await door.ask("POST", MAPS, io.BytesIO(b"x" * (3 * 1024 * 1024 + 1)))
    assert (large.code, large.json["reason"]) == (413, "RequestEntityTooLarge")
    unreadable = await door.ask("GET", MAPS, Accept="text/html")
    assert (unreadable.code, unreadable.json["reason"]) == (406, "NotAcceptable")


async def test_finalizers_hold_an_object_until_the_last_is_gone(door: Door) -> None:
    finalized = {"metadata": {"name": "a", "finalizers": ["x.io/a", "x.io/b"]}}
    await door.ask("POST", MAPS, finalized)
    marked = await door.ask("DELETE", f"{MAPS}/a")
    assert marked.json["metadata"]["deletionTimestamp"]
    left = {"metadata": {"finalizers": ["x.io/b"]}}
    assert (await door.ask("PATCH", f"{MAPS}/a", left, content_type=MERGE)).code == 200
    assert (await door.ask("GET", f"{MAPS}/a")).code == 200
    none = {"metadata": {"finalizers": None}}
    assert (await door.ask("PATCH", f"{MAPS}/a", none, content_type=MERGE)).code == 200
    assert (await door.ask("GET", f"{MAPS}/a")).code == 404


async def test_a_collection_is_deleted_by_selector(door: Door) -> None:
    await door.create(MAPS, "a", labels={"on": "y"})
    await door.create(MAPS, "b", labels={"on": "n"})
    deleted = await door.ask("DELETE", f"{MAPS}?labelSelector=on%3Dy")
    assert [item["metadata"]["name"] for item in deleted.json["items"]] == ["a"]
    left = await door.ask("GET", MAPS)
    assert [item["metadata"]["name"] for item in left.json["items"]] == ["b"]


async def test_items_of_a_list_leave_their_kind_to_the_list(door: Door) -> None:
    await door.create(MAPS, "a")
    listed = (await door.ask("GET", MAPS)).json
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert [set(item) for item in listed["items"]] == [{"metadata"}]


async def test_metadata_alone_can_be_asked_for(door: Door) -> None:
    await door.create(MAPS, "a", data={"k": "v"})
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    listed = (await door.ask("GET", MAPS, Accept=accept)).json
    assert listed["kind"] == "PartialObjectMetadataList"
    assert set(listed["items"][0]) == {"kind", "apiVersion", "metadata"}


async def test_a_pod_is_bound_once(door: Door) -> None:
    await door.create("/api/v1/namespaces/default/serviceaccounts", "default")
    await door.create(PODS, "a", spec={"containers": [{"name": "c", "image": "i"}]})
    binding = {"kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "n"}}
    bound = await door.ask("POST", f"{PODS}/a/binding", binding)
    assert (bound.code, bound.json["status"]) == (201, "Success")
    pod = (await door.ask("GET", f"{PODS}/a")).json
    assert pod["spec"]["nodeName"] == "n"
    scheduled = [c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert [each["status"] for each in scheduled] == ["True"]
    again = await door.ask("POST", f"{PODS}/a/binding", binding)
    assert again.json["message"] == (
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n"'
    )


async def test_an_evicted_pod_gets_its_grace(door: Door) -> None:
    await door.create("/api/v1/namespaces/default/serviceaccounts", "default")
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    await door.create(PODS, "a", spec={**spec, "terminationGracePeriodSeconds": 7})
    evicted = await door.ask("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
    assert evicted.code == 201
    pod = (await door.ask("GET", f"{PODS}/a")).json
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 7
    ended = await door.ask("DELETE", f"{PODS}/a?gracePeriodSeconds=0")
    assert ended.json["kind"] == "Pod"
    assert (await door.ask("GET", f"{PODS}/a")).code == 404


async def test_a_namespace_waits_for_its_controller(door: Door) -> None:
    await door.create("/api/v1/namespaces", "tenant")
    terminating = (await door.ask("DELETE", "/api/v1/namespaces/tenant")).json
    assert terminating["status"]["phase"] == "Terminating"
    finalized = {**terminating, "spec": {"finalizers": []}}
    assert (await door.ask("PUT", "/api/v1/namespaces/tenant/finalize", finalized)).code == 200
    assert (await door.ask("GET", "/api/v1/namespaces/tenant")).code == 404


async def test_health_and_who_the_server_is(server: SimulatedApiServer, door: Door) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        healthy = await door.ask("GET", path)
        assert (healthy.code, healthy.text) == (200, "ok")
    assert healthy.headers["Server"] == "casaba-simulated-apiserver"
    assert (await door.ask("GET", "/version")).json["gitVersion"].endswith("+casaba.simulated")


async def test_namespaces_are_there_from_the_start(door: Door) -> None:
    listed = (await door.ask("GET", "/api/v1/namespaces")).json
    assert {item["metadata"]["name"] for item in listed["items"]} == {
        "default",
        "kube-system",
        "kube-public",
        "kube-node-lease",
    }


async def test_strangers_may_do_nothing(server: SimulatedApiServer) -> None:
    stranger = door_of(server, "stranger")
    async with stranger.session:
        refused = await stranger.ask("GET", PODS)
        assert refused.json["message"] == (
            'pods is forbidden: User "stranger" cannot list resource "pods" in API group "" '
            'in the namespace "default"'
        )
        as_admin = {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"}
        assert (await stranger.ask("GET", PODS, **as_admin)).code == 403


async def test_who_may_can_act_as_another(door: Door) -> None:
    reply = await door.ask("GET", NODES, **{"Impersonate-User": "bob"})
    assert reply.code == 403
    assert 'User "bob" cannot list resource "nodes"' in reply.json["message"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_it_listens_to_this_machine_only(host: str) -> None:
    with pytest.raises(InvalidInput, match="loopback only"):
        SimulatedApiServer(host=host)


async def test_writers_who_look_before_they_write_lose_nothing(door: Door) -> None:
    await door.create(MAPS, "a", data={"count": "0"})

    async def count_up(times: int) -> None:
        while times:
            current = (await door.ask("GET", f"{MAPS}/a")).json
            current["data"]["count"] = str(int(current["data"]["count"]) + 1)
            reply = await door.ask("PUT", f"{MAPS}/a", current)
            assert reply.code in (200, 409)
            times -= reply.code == 200

    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(count_up(6))
    assert (await door.ask("GET", f"{MAPS}/a")).json["data"] == {"count": "30"}


async def test_patches_at_once_all_come_through(door: Door) -> None:
    await door.create(MAPS, "a")
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            patch = {"data": {f"k{number}": "v"}}
            group.create_task(door.ask("PATCH", f"{MAPS}/a", patch, content_type=MERGE))
    assert len((await door.ask("GET", f"{MAPS}/a")).json["data"]) == 20
