"""What becomes of refusals, of servers that say later, and of those that say nothing."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from casaba import kube
from casaba.kube import (
    NODES,
    KubeClient,
    KubeConfig,
    transport,
)
from tests.component.kube.recording_server import RecordingServer, Reply

pytestmark = pytest.mark.timeout(20)


@asynccontextmanager
async def _refusing_in_pieces(
    body: bytes,
    piece_bytes: int,
    *,
    promised_bytes: int | None = None,
    request_timeout_s: float = 10.0,
) -> AsyncIterator[KubeClient]:
    """A client of a server that answers 422, each piece of the body in a segment of its own."""
    over = asyncio.Event()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        length = promised_bytes or len(body)
        writer.write(b"HTTP/1.1 422 Invalid\r\nContent-Length: %d\r\n\r\n" % length)
        for at in range(0, len(body), piece_bytes):
            if over.is_set():
                break
            writer.write(body[at : at + piece_bytes])
            await asyncio.sleep(0.0001)
        await over.wait()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        config = KubeConfig(origin="test", server=url)
        try:
            async with KubeClient(config, request_timeout_s=request_timeout_s) as client:
                yield client
        finally:
            over.set()


async def _read(client: KubeClient) -> object:
    return await client.get(NODES, "a")


async def _watch(client: KubeClient) -> object:
    return await client.open_watch(NODES, resource_version="1", timeout_s=60)


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


@pytest.mark.parametrize("piece_bytes", [1, 100, 834])
async def test_a_refusal_that_comes_in_pieces_is_read_to_its_end(piece_bytes: int) -> None:
    body = json.dumps({"kind": "Status", "code": 422, "message": f"{'x' * 900} the end"}).encode()
    async with _refusing_in_pieces(body, piece_bytes) as client:
        with pytest.raises(kube.Invalid, match="the end") as caught:
            await client.get(NODES, "a")
    assert caught.value.code == 422


async def test_a_refusal_without_end_is_left_after_its_beginning() -> None:
    body = b"x" * (4 * transport.REFUSAL_BODY_BYTES)
    async with _refusing_in_pieces(body, 4096) as client:
        with pytest.raises(kube.Invalid, match=f"answer of {transport.REFUSAL_BODY_BYTES} bytes"):
            await client.get(NODES, "a")


@pytest.mark.parametrize("ask", [_read, _watch])
async def test_a_refusal_that_stops_halfway_is_left_after_the_timeout(
    ask: Callable[[KubeClient], Awaitable[object]],
) -> None:
    async with _refusing_in_pieces(b"{", 1, promised_bytes=2, request_timeout_s=0.1) as client:
        async with asyncio.timeout(5):
            with pytest.raises(kube.Unreachable, match="no answer"):
                await ask(client)


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
