"""What the verbs that read send, and what becomes of the answers."""

import gzip
import json
from typing import Any

import pytest

from casaba import kube
from casaba.kube import (
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    KubeClient,
)
from tests.component.kube.recording_server import RecordingServer, Reply

pytestmark = pytest.mark.timeout(20)

NODE = {"kind": "Node", "metadata": {"name": "a", "uid": "u", "labels": {"gpu": "on"}}}


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
