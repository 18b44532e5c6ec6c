"""Who we say we are in each request."""

import os
from pathlib import Path

import pytest

from casaba import kube
from casaba.kube import (
    NODES,
    KubeClient,
    KubeConfig,
)
from tests.component.kube.recording_server import RecordingServer, Reply

pytestmark = pytest.mark.timeout(20)


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
