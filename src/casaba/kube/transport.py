"""HTTP towards one API server: connections, identity, and errors translated at this border."""

import asyncio
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
from aiohttp import AddrInfoType

from casaba.kube.calls import Call
from casaba.kube.config import KubeConfig
from casaba.kube.errors import (
    Refused,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    Untrusted,
    refusal_of_answer,
)
from casaba.kube.identity import Identity, Proof
from casaba.kube.server_warnings import ServerWarnings

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
READ_BUFFER_BYTES = 256 * 1024
REFUSAL_BODY_BYTES = 64 * 1024
"""At most this much of a refusal is read."""

REQUESTS_AT_ONCE = 8
"""More wait for their turn: each connection's TLS buffers are memory that is never given back."""

TRIES = 10
"""How often a server that says when to come again is believed, as in client-go."""

LEAST_WAIT_S = 0.1
"""A server that says "come again after 0 s" is not taken by its word."""

_DEAD_PEER_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 7_000),
)
"""Seconds, seconds, count, milliseconds: a peer that is gone without a word is noticed within
10 s, on idle streams by probes and on busy ones by unacknowledged bytes."""


class ByteStream:
    """The body of an answer that goes on for long."""

    def __init__(self, call: Call, server: str, response: aiohttp.ClientResponse) -> None:
        self._call = call
        self._server = server
        self._response = response

    async def read(self) -> bytes:
        """The next bytes, empty at a clean end; raises Unreachable. If cancelled: none are lost."""
        with _translated(self._call, self._server):
            return await self._response.content.readany()

    def close(self) -> None:
        """Drop the connection, at once: a peer that says nothing more would keep it otherwise."""
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()


class Transport:
    """Sends calls; `async with` holds its connections."""

    def __init__(
        self, config: KubeConfig, *, user_agent: str, request_timeout_s: float, patience_s: float
    ) -> None:
        self._config = config
        self._identity = Identity(config)
        self._warnings = ServerWarnings()
        self._user_agent = user_agent
        self._request_timeout_s = request_timeout_s
        self._patience_s = patience_s
        self._session: aiohttp.ClientSession | None = None
        self._turns = asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def __aenter__(self) -> "Transport":
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, socket_factory=_dead_peer_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": self._user_agent, "Accept-Encoding": "gzip"},
            read_bufsize=READ_BUFFER_BYTES,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def request(self, call: Call) -> bytes:
        """The body of a good answer; raises Refused and Unreachable.

        A server that says when to come again is asked again then. If cancelled or Unreachable:
        the server may or may not have done it.
        """
        give_up_at_s = time.monotonic() + self._patience_s
        for _ in range(TRIES):
            try:
                return await self._request_once(call)
            except Refused as refusal:
                delay_s = _wait_asked_for(call, refusal)
                if delay_s is None or time.monotonic() + delay_s > give_up_at_s:
                    raise
                log.warning(
                    "kube.told_to_wait", extra={"error": str(refusal), "retry_in_s": delay_s}
                )
            await asyncio.sleep(delay_s)
        return await self._request_once(call)

    async def stream(self, call: Call, *, limit_s: float | None) -> ByteStream:
        """The body of a good answer as it comes, for at most `limit_s`; raises as `request`."""
        return ByteStream(call, self._config.server, await self._open(call, limit_s))

    async def _request_once(self, call: Call) -> bytes:
        async with self._turns:
            response = await self._open(call, self._request_timeout_s)
            with _translated(call, self._config.server):
                async with response:
                    return await response.read()

    async def _open(self, call: Call, limit_s: float | None) -> aiohttp.ClientResponse:
        proof = await self._identity.proof()
        try:
            return await self._open_once(call, proof, limit_s)
        except Unauthorized:
            if not await self._identity.renewed(proof):
                raise
        return await self._open_once(call, await self._identity.proof(), limit_s)

    async def _open_once(
        self, call: Call, proof: Proof, limit_s: float | None
    ) -> aiohttp.ClientResponse:
        with _translated(call, self._config.server):
            async with asyncio.timeout(self._request_timeout_s):  # streams, too, begin soon
                response = await self._send(call, proof, limit_s)
                self._warnings.hear(response.headers.getall("Warning", ()), str(call))
                if 200 <= response.status < 300:
                    return response
                async with response:
                    body = await _beginning(response.content, REFUSAL_BODY_BYTES)
        retry_after = response.headers.get("Retry-After")
        raise refusal_of_answer(str(call), response.status, body, retry_after)

    async def _send(
        self, call: Call, proof: Proof, limit_s: float | None
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is used outside of its `async with`")
        headers = [*proof.headers, ("Accept", call.accept)]
        if call.body is not None:
            headers.append(("Content-Type", call.content_type))
        return await self._session.request(
            call.method,
            self._config.server + call.path,
            params=call.query,
            data=call.body,
            headers=headers,
            ssl=proof.tls or True,
            server_hostname=self._config.tls_server_name,
            proxy=self._config.proxy_url,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=limit_s, sock_connect=CONNECT_TIMEOUT_S),
        )


async def _beginning(content: aiohttp.StreamReader, max_bytes: int) -> bytes:
    """All of a body, or its first bytes if it is longer; one read may bring only a segment."""
    read = bytearray()
    while len(read) < max_bytes and (piece := await content.read(max_bytes - len(read))):
        read += piece
    return bytes(read)


def _wait_asked_for(call: Call, refusal: Refused) -> float | None:
    """After how many seconds to try again, None for never.

    A 429 was not done, whatever was asked; of a failure of the server only reads can say that.
    """
    again = isinstance(refusal, TooManyRequests) or (
        isinstance(refusal, ServerError) and call.method == "GET"
    )
    if not again or refusal.retry_after_s is None:
        return None
    return max(refusal.retry_after_s, LEAST_WAIT_S)


@contextmanager
def _translated(call: Call, server: str) -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
        raise Untrusted(
            f"{call}: no TLS with {server}: {error.__cause__ or error}; "
            "check certificate-authority, tls-server-name and the client certificate"
        ) from error
    except aiohttp.ClientConnectorError as error:
        raise Unreachable(f"{call}: no answer from {server}: {error.__cause__ or error}") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise Unreachable(f"{call}: no answer from {server}: {reason}") from error


def _dead_peer_socket(address: AddrInfoType) -> socket.socket:
    family, kind, protocol, *_ = address
    connection = socket.socket(family, kind, protocol)
    for level, option, value in _DEAD_PEER_OPTIONS:
        connection.setsockopt(level, option, value)
    return connection
