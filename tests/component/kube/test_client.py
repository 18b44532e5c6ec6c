"""What the verbs send, what becomes of the answers, and of the refusals."""

import asyncio
import gzip
import json
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from casaba import kube
from casaba.errors import InvalidInput
from casaba.kube import (
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    KubeClient,
    KubeConfig,
    transport,
)
from tests.component.kube.recording_server import RecordingServer, Reply

pytestmark = pytest.mark.timeout(20)

NODE = {"kind": "Node", "metadata": {"name": "a", "uid": "u", "labels": {"gpu": "on"}}}


@pytest.fixture
async def server() -> AsyncIterator[RecordingServer]:
    async with RecordingServer() as server:
        yield server


@pytest.fixture
async def client(server: RecordingServer) -> AsyncIterator[KubeClient]:
    async with KubeClient(KubeConfig(origin="test", server=server.url)) as client:
        yield client


async def test_get_decodes_into_the_form_that_is_asked_for(
    server: RecordingServer, client: KubeClient
) -> None:
    server.replies += [Reply(NODE), Reply(NODE)]
    node = await client.get(NODES, "a")
    assert (node.metadata.uid, node.metadata.labels) == ("u", {"gpu": "on"})
    assert await client.get(NODES.decoded_as(dict), "a") == NODE
    assert [(a.method, a.path) for a in server.asked] == [("GET", "/api/v1/nodes/a")] * 2


async def test_paths_of_groups_namespaces_and_subresources(
    server: RecordingServer, client: KubeClient
) -> None:
    claims = RESOURCE_CLAIMS.decoded_as(dict)
    await client.get(claims, "c", namespace="ns", subresource="status")
    assert server.asked[0].path == (
        "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status"
    )


async def test_a_list_goes_through_all_pages(server: RecordingServer, client: KubeClient) -> None:
    def named(name: str) -> dict[str, Any]:
        return {"metadata": {"name": name}}

    server.replies += [
        Reply({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [named("a")]}),
        Reply({"metadata": {"resourceVersion": "7"}, "items": [named("b")]}),
    ]
    listed = await client.list(NODES, label_selector="gpu=on")
    assert [node.metadata.name for node in listed.items] == ["a", "b"]
    assert listed.resource_version == "7"
    assert server.asked[0].query == {"labelSelector": "gpu=on", "limit": "500"}
    assert server.asked[1].query["continue"] == "more"


async def test_a_list_whose_next_page_is_gone_is_asked_for_in_one_piece(
    server: RecordingServer, client: KubeClient
) -> None:
    server.replies += [
        Reply({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": []}),
        Reply({"reason": "Expired", "code": 410}, code=410),
        Reply({"metadata": {"resourceVersion": "9"}, "items": None}),
    ]
    listed = await client.list(NODES)
    assert (listed.items, listed.resource_version) == ((), "9")
    assert server.asked[2].query == {}


async def test_create_names_the_kind(server: RecordingServer, client: KubeClient) -> None:
    slices = RESOURCE_SLICES.decoded_as(dict)
    await client.create(slices, {"metadata": {"generateName": "x-"}})
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("POST", "/apis/resource.k8s.io/v1/resourceslices")
    assert asked.document == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"generateName": "x-"},
    }


async def test_apply_is_server_side_with_our_field_manager(
    server: RecordingServer, client: KubeClient
) -> None:
    await client.apply(NODES.decoded_as(dict), "a", {"metadata": {"name": "a"}})
    await client.apply(NODES.decoded_as(dict), "a", b'{"raw":1}', force=False)
    first, second = server.asked
    assert first.method == "PATCH"
    assert first.headers["Content-Type"] == "application/apply-patch+yaml"
    assert first.query == {"fieldManager": "casaba", "force": "true"}
    assert first.document["kind"] == "Node"
    assert (second.query["force"], second.body) == ("false", b'{"raw":1}')


async def test_patches_carry_their_preconditions(
    server: RecordingServer, client: KubeClient
) -> None:
    nodes = NODES.decoded_as(dict)
    merge = {"metadata": {"labels": {"a": None}}}
    await client.patch(nodes, "a", merge, uid="u", resource_version="5")
    await client.patch(nodes, "a", [{"op": "remove", "path": "/x"}], resource_version="5")
    await client.patch(nodes, "a", {"status": {}}, subresource="status")
    merged, listed, status = server.asked
    assert merged.headers["Content-Type"] == "application/merge-patch+json"
    assert merged.document == {
        "metadata": {"labels": {"a": None}, "uid": "u", "resourceVersion": "5"}
    }
    assert listed.headers["Content-Type"] == "application/json-patch+json"
    assert listed.document == [
        {"op": "add", "path": "/metadata/resourceVersion", "value": "5"},
        {"op": "remove", "path": "/x"},
    ]
    assert (status.path, status.document) == ("/api/v1/nodes/a/status", {"status": {}})


async def test_delete_carries_its_preconditions(
    server: RecordingServer, client: KubeClient
) -> None:
    await client.delete(NODES, "a", uid="u", resource_version="5")
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("DELETE", "/api/v1/nodes/a")
    assert asked.document["preconditions"] == {"uid": "u", "resourceVersion": "5"}


async def test_delete_options(server: RecordingServer, client: KubeClient) -> None:
    await client.delete(NODES, "a", propagation="Foreground", grace_period_s=0, dry_run=True)
    await client.delete_collection(
        PODS, namespace="ns", label_selector="a=b", field_selector="c=d", propagation="Orphan"
    )
    one, many = server.asked
    assert one.document == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "dryRun": ["All"],
    }
    assert (many.method, many.path) == ("DELETE", "/api/v1/namespaces/ns/pods")
    assert many.query == {"labelSelector": "a=b", "fieldSelector": "c=d"}
    assert many.document["propagationPolicy"] == "Orphan"


async def test_update_sends_the_whole_object(server: RecordingServer, client: KubeClient) -> None:
    body = {"metadata": {"name": "a", "resourceVersion": "5"}}
    await client.update(NODES.decoded_as(dict), "a", body, subresource="status")
    await client.update(NODES.decoded_as(dict), "a", b'{"raw":1}')
    first, second = server.asked
    assert (first.method, first.path) == ("PUT", "/api/v1/nodes/a/status")
    assert first.document == {"apiVersion": "v1", "kind": "Node", **body}
    assert second.body == b'{"raw":1}'


@pytest.mark.parametrize(
    ("subresource", "api_version", "kind"),
    [
        ("binding", "v1", "Binding"),
        ("eviction", "policy/v1", "Eviction"),
        ("token", "authentication.k8s.io/v1", "TokenRequest"),
    ],
)
async def test_subresources_that_are_created_are_of_their_own_kind(
    server: RecordingServer, client: KubeClient, subresource: str, api_version: str, kind: str
) -> None:
    pods = PODS.decoded_as(dict)
    await client.create(pods, {"x": 1}, namespace="n", name="p", subresource=subresource)
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("POST", f"/api/v1/namespaces/n/pods/p/{subresource}")
    assert asked.document == {"apiVersion": api_version, "kind": kind, "x": 1}


async def test_every_write_can_be_dry_and_strict_and_for_another_manager(
    server: RecordingServer, client: KubeClient
) -> None:
    nodes = NODES.decoded_as(dict)
    options: kube.WriteOptions = {
        "dry_run": True,
        "field_validation": "Strict",
        "field_manager": "me",
    }
    await client.create(nodes, {}, **options)
    await client.update(nodes, "a", {}, **options)
    await client.patch(nodes, "a", {}, **options)
    await client.apply(nodes, "a", {}, **options)
    sent = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "me"}
    assert all(asked.query.items() >= sent.items() for asked in server.asked)
    assert len(server.asked) == 4


async def test_a_strategic_merge_patch(server: RecordingServer, client: KubeClient) -> None:
    nodes = NODES.decoded_as(dict)
    await client.patch(nodes, "a", {"spec": {}}, strategic=True, resource_version="5")
    asked = server.asked[0]
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert asked.document == {"spec": {}, "metadata": {"resourceVersion": "5"}}
    with pytest.raises(ValueError, match="strategic merge patch is a dict"):
        await client.patch(nodes, "a", [], strategic=True)


async def test_logs_as_bytes_at_once_or_as_they_come(
    server: RecordingServer, client: KubeClient
) -> None:
    server.replies += [Reply(b"\xffall"), Reply(b"some")]
    query = {"container": "c"}
    log = await client.read(PODS, "p", namespace="n", subresource="log", query=query)
    assert log == b"\xffall"
    stream = await client.open_stream(PODS, "p", namespace="n", subresource="log", query=query)
    assert [await stream.read(), await stream.read()] == [b"some", b""]
    stream.close()
    for asked in server.asked:
        assert (asked.path, asked.query) == ("/api/v1/namespaces/n/pods/p/log", query)
        assert asked.headers["Accept"] == "*/*"


async def test_each_warning_of_the_server_is_told_once(
    server: RecordingServer, client: KubeClient, caplog: pytest.LogCaptureFixture
) -> None:
    first = '299 - "spec.x is \\"old\\"", 299 - "y, too"'
    server.replies += [
        Reply({}, headers={"Warning": first}),
        Reply({"code": 400}, code=400, headers={"Warning": '299 - "y, too"'}),
        Reply({}, headers={"Warning": '199 - "not ours", 299 - "z"'}),
    ]
    nodes = NODES.decoded_as(dict)
    await client.create(nodes, {})
    with pytest.raises(kube.Invalid):
        await client.create(nodes, {})
    await client.create(nodes, {})
    told = [r for r in caplog.records if r.message == "kube.server_warns"]
    assert [vars(r)["warning"] for r in told] == ['spec.x is "old"', "y, too", "z"]


async def test_impersonation_is_told_in_headers(server: RecordingServer) -> None:
    who = kube.Impersonation(user="me", uid="1", groups=("g", "h"), extra={"a/b": ("c",)})
    config = KubeConfig(origin="test", server=server.url, token="t", impersonate=who)
    async with KubeClient(config) as client:
        await client.get(NODES.decoded_as(dict), "a")
    headers = server.asked[0].headers
    assert headers["Authorization"] == "Bearer t"
    assert (headers["Impersonate-User"], headers["Impersonate-Uid"]) == ("me", "1")
    assert headers.getall("Impersonate-Group") == ["g", "h"]
    assert headers["Impersonate-Extra-a%2Fb"] == "c"


async def test_a_proxy_is_asked_instead_of_the_server(server: RecordingServer) -> None:
    config = KubeConfig(origin="test", server="http://kubernetes.invalid", proxy_url=server.url)
    async with KubeClient(config) as client:
        await client.get(NODES.decoded_as(dict), "a")
    assert server.asked[0].headers["Host"] == "kubernetes.invalid"
    assert server.asked[0].path == "/api/v1/nodes/a"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
async def test_a_name_that_would_address_something_else_is_not_sent(
    server: RecordingServer, client: KubeClient, name: str
) -> None:
    with pytest.raises(InvalidInput, match="name of a Kubernetes object"):
        await client.delete(NODES, name)
    assert not server.asked


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", kube.Invalid),
        (401, "Unauthorized", kube.Unauthorized),
        (403, "Forbidden", kube.Forbidden),
        (404, "NotFound", kube.NotFound),
        (409, "Conflict", kube.Conflict),
        (409, "AlreadyExists", kube.AlreadyExists),
        (410, "Expired", kube.Gone),
        (422, "Invalid", kube.Invalid),
        (429, "TooManyRequests", kube.TooManyRequests),
        (500, "InternalError", kube.ServerError),
        (503, "ServiceUnavailable", kube.ServerError),
        (302, "", kube.Refused),
    ],
)
async def test_each_refusal_is_an_error_of_its_own(
    server: RecordingServer, client: KubeClient, code: int, reason: str, kind: type[kube.Refused]
) -> None:
    answer = {"kind": "Status", "code": code, "reason": reason, "message": "because"}
    server.replies.append(Reply(answer, code=code, headers={"Location": "/elsewhere"}))
    with pytest.raises(kube.Refused) as caught:
        await client.get(NODES, "a")
    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert str(caught.value).startswith("get /api/v1/nodes/a: because (")
    assert len(server.asked) == 1


async def test_the_time_to_wait_comes_from_header_or_status(server: RecordingServer) -> None:
    server.replies += [
        Reply({"code": 429}, code=429, headers={"Retry-After": "3"}),
        Reply({"code": 503, "details": {"retryAfterSeconds": 4}}, code=503),
        Reply({"code": 503}, code=503, headers={"Retry-After": "soon"}),
    ]
    waits = []
    async with KubeClient(KubeConfig(origin="test", server=server.url), patience_s=2) as client:
        for _ in range(3):
            with pytest.raises(kube.Refused) as caught:
                await client.get(NODES, "a")
            waits.append(caught.value.retry_after_s)
    assert waits == [3.0, 4.0, None]
    assert len(server.asked) == 3


async def test_a_server_that_says_when_to_come_again_is_asked_again(
    server: RecordingServer, client: KubeClient
) -> None:
    later = {"Retry-After": "0"}
    server.replies += [Reply({"code": 429}, code=429, headers=later)] * 2
    await client.create(NODES.decoded_as(dict), {"metadata": {"name": "a"}})
    assert [asked.method for asked in server.asked] == ["POST"] * 3
    server.replies.append(Reply({"code": 503}, code=503, headers=later))
    await client.get(NODES.decoded_as(dict), "a")
    assert len(server.asked) == 5


async def test_a_write_that_failed_in_the_server_is_not_repeated(
    server: RecordingServer, client: KubeClient
) -> None:
    server.replies.append(Reply({"code": 503}, code=503, headers={"Retry-After": "0"}))
    with pytest.raises(kube.ServerError):
        await client.create(NODES.decoded_as(dict), {"metadata": {"name": "a"}})
    assert len(server.asked) == 1


async def test_a_server_that_always_says_later_is_left_after_ten_times(
    server: RecordingServer, client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "LEAST_WAIT_S", 0.001)
    server.replies += [Reply({"code": 429}, code=429, headers={"Retry-After": "0"})] * 20
    with pytest.raises(kube.TooManyRequests):
        await client.delete(NODES, "a")
    assert len(server.asked) == 11


async def test_a_uid_that_differs_is_a_conflict(
    server: RecordingServer, client: KubeClient
) -> None:
    details = {"causes": [{"reason": "FieldValueInvalid", "field": "metadata.uid"}]}
    server.replies.append(Reply({"code": 422, "reason": "Invalid", "details": details}, code=422))
    with pytest.raises(kube.Conflict):
        await client.patch(NODES, "a", {}, uid="other")


async def test_a_body_that_is_no_status_is_not_shown(
    server: RecordingServer, client: KubeClient
) -> None:
    server.replies.append(Reply(b"<html>secret</html>", code=502))
    with pytest.raises(kube.ServerError, match="no Kubernetes Status") as caught:
        await client.get(NODES, "a")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"metadata": {"uid": 5}}'])
async def test_an_answer_of_another_shape_says_so(
    server: RecordingServer, client: KubeClient, body: bytes
) -> None:
    server.replies.append(Reply(body))
    with pytest.raises(kube.Undecodable, match="get /api/v1/nodes/a"):
        await client.get(NODES, "a")


async def test_compressed_answers(server: RecordingServer, client: KubeClient) -> None:
    compressed = gzip.compress(json.dumps(NODE).encode())
    server.replies.append(Reply(compressed, headers={"Content-Encoding": "gzip"}))
    assert (await client.get(NODES, "a")).metadata.name == "a"
    assert server.asked[0].headers["Accept-Encoding"] == "gzip"


async def test_nobody_there_says_whom_we_asked(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    async with KubeClient(KubeConfig(origin="test", server=url)) as client:
        with pytest.raises(kube.Unreachable, match=f"get /api/v1/nodes/a: no answer from {url}"):
            await client.get(NODES, "a")


async def test_a_server_that_never_answers_is_left_after_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = KubeConfig(origin="test", server=f"http://127.0.0.1:{silent.getsockname()[1]}")
        async with KubeClient(config, request_timeout_s=0.1) as client:
            async with asyncio.timeout(5):
                with pytest.raises(kube.Unreachable, match="no answer"):
                    await client.get(NODES, "a")


async def test_a_token_that_was_replaced_is_read_again_when_it_changes_or_is_refused(
    server: RecordingServer, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    config = KubeConfig(origin="test", server=server.url, token_file=token)
    async with KubeClient(config) as client:
        await client.get(NODES.decoded_as(dict), "a")
        before = token.stat().st_mtime_ns
        token.write_text("two")
        os.utime(token, ns=(before, before))  # a clock too coarse to show the change
        server.replies.append(Reply({"code": 401}, code=401))
        await client.get(NODES.decoded_as(dict), "a")
        token.write_text("three")
        os.utime(token, ns=(before + 1, before + 1))
        await client.get(NODES.decoded_as(dict), "a")
    sent = [asked.headers["Authorization"].removeprefix("Bearer ") for asked in server.asked]
    assert sent == ["one", "one", "two", "three"]
