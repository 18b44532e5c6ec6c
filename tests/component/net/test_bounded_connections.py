"""What connections cost the metrics door: of many, of mute, and of those that read nothing."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry

from casaba.net.bounded_connections import ConnectionBounds
from casaba.net.http_metrics import MetricsServer
from casaba.wire.exposition import Family

HALF = b"GET /healthz HTTP/1.1\r\nHost: here\r\n"
WHOLE = HALF + b"\r\n"
LONG_S = 600.0
SHORT_S = 0.05
MORE_THAN_SOCKETS_HOLD = 64 << 20

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def door(*, most: int = 100, head_s: float = LONG_S, between_s: float = LONG_S) -> MetricsServer:
    """A door on a free port; no bound but those that a test asks for."""
    bounds = ConnectionBounds(most=most, head_s=head_s, between_s=between_s)
    return MetricsServer(
        "127.0.0.1:0",
        CollectorRegistry(),
        is_ready=lambda: None,
        families=huge_families,
        bounds=bounds,
    )


async def huge_families() -> list[Family]:
    text = "x" * MORE_THAN_SOCKETS_HOLD
    return [Family(name="huge", kind="gauge", help=text, labels=(), samples=[])]


@contextlib.asynccontextmanager
async def connected(server: MetricsServer, *, say: bytes = b"") -> AsyncIterator[Connection]:
    """A client that has said something."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    try:
        writer.write(say)
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def answered(connection: Connection) -> bool:
    """Whether a request for /healthz is answered."""
    reader, writer = connection
    try:
        writer.write(WHOLE)
        return b"ok\n" in await reader.readuntil(b"ok\n")
    except (OSError, asyncio.IncompleteReadError):
        return False


async def ended(connection: Connection) -> None:
    """Returns when the server has ended the connection."""
    with contextlib.suppress(OSError):
        while await connection[0].read(1 << 20):
            pass


@pytest.mark.parametrize("said", [b"", HALF, WHOLE[:-1]])
async def test_who_sends_no_whole_head_is_ended(said: bytes) -> None:
    async with door(head_s=SHORT_S) as server, connected(server, say=said) as mute:
        await ended(mute)


@pytest.mark.parametrize("said", [b"", HALF])
async def test_who_has_asked_and_asks_no_more_is_ended(said: bytes) -> None:
    async with door(between_s=SHORT_S) as server, connected(server) as idle:
        assert await answered(idle)
        idle[1].write(said)
        await ended(idle)


async def test_who_reads_no_answer_is_ended() -> None:
    ask = b"GET /metrics HTTP/1.1\r\nHost: here\r\nAccept-Encoding: identity\r\n\r\n"
    async with door(between_s=1.0) as server, connected(server, say=ask) as deaf:
        await deaf[0].readexactly(1)
        await asyncio.wait_for(_let_go(server), LONG_S)
        with pytest.raises((asyncio.IncompleteReadError, OSError)):
            await deaf[0].readexactly(MORE_THAN_SOCKETS_HOLD)


async def _let_go(server: MetricsServer) -> None:
    while server.connection_count:  # noqa: ASYNC110 - nobody tells when
        await asyncio.sleep(SHORT_S)


async def test_a_connection_is_kept_while_it_asks_in_time() -> None:
    async with door() as server, connected(server) as kept:
        for _ in range(3):
            assert await answered(kept)
        assert server.connection_count == 1


async def test_mute_connections_take_no_room_from_others() -> None:
    async with door(most=5) as server, contextlib.AsyncExitStack() as stack:
        asking = await stack.enter_async_context(connected(server))
        assert await answered(asking)
        mute = [await stack.enter_async_context(connected(server, say=HALF)) for _ in range(40)]
        late = await stack.enter_async_context(connected(server))
        assert await answered(late)
        assert await answered(asking)
        assert server.connection_count <= 5
        for connection in mute[:35]:
            await ended(connection)


async def test_where_all_have_asked_the_one_that_was_silent_longest_goes() -> None:
    async with door(most=3) as server, contextlib.AsyncExitStack() as stack:
        first, second, third = [
            await stack.enter_async_context(connected(server)) for _ in range(3)
        ]
        for connection in (first, second, third, first):
            assert await answered(connection)
        fourth = await stack.enter_async_context(connected(server))
        assert await answered(fourth)
        await ended(second)
        assert await answered(first)
        assert await answered(third)
