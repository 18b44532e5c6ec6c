"""HTTP towards one API server: connections, identity, and errors translated at this border."""

import asyncio
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType

import aiohttp
from aiohttp import AddrInfoType

from casaba.kube.config import KubeConfig
from casaba.kube.errors import Unauthorized, Unreachable, Untrusted, refusal_of_answer
from casaba.kube.tls import tls_context
from casaba.kube.tokens import TokenSource

CONNECT_TIMEOUT_S = 10.0
READ_BUFFER_BYTES = 256 * 1024
REFUSAL_BODY_BYTES = 64 * 1024
"""At most this much of a refusal is read."""

REQUESTS_AT_ONCE = 8
"""More wait for their turn: each connection's TLS buffers are memory that is never given back."""

_DEAD_PEER_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 7_000),
)
"""Seconds, seconds, count, milliseconds: a peer that is gone without a word is noticed within
10 s, on idle streams by probes and on busy ones by unacknowledged bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request; `verb` is Kubernetes' word for it, `method` HTTP's."""

    verb: str
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"


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
        """Drop the connection."""
        self._response.close()


class Transport:
    """Sends calls; `async with` holds its connections."""

    def __init__(self, config: KubeConfig, *, user_agent: str, request_timeout_s: float) -> None:
        self._config = config
        self._tls = tls_context(config)
        self._tokens = TokenSource(config)
        self._user_agent = user_agent
        self._request_timeout_s = request_timeout_s
        self._session: aiohttp.ClientSession | None = None
        self._turns = asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def __aenter__(self) -> "Transport":
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ssl=self._tls or True, socket_factory=_dead_peer_socket
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": self._user_agent, "Accept-Encoding": "gzip"},
            read_bufsize=READ_BUFFER_BYTES,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session:
            await self._session.close()

    async def request(self, call: Call) -> bytes:
        """The body of a good answer; raises Refused and Unreachable.

        If cancelled or Unreachable: the server may or may not have done it.
        """
        async with self._turns:
            response = await self._open(call, self._request_timeout_s)
            with _translated(call, self._config.server):
                async with response:
                    return await response.read()

    async def stream(self, call: Call, *, limit_s: float) -> ByteStream:
        """The body of a good answer as it comes, for at most `limit_s`; raises as `request`."""
        return ByteStream(call, self._config.server, await self._open(call, limit_s))

    async def _open(self, call: Call, limit_s: float) -> aiohttp.ClientResponse:
        try:
            return await self._open_once(call, limit_s)
        except Unauthorized:
            if not self._tokens.refused():
                raise
        return await self._open_once(call, limit_s)

    async def _open_once(self, call: Call, limit_s: float) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is used outside of its `async with`")
        headers = {"Accept": "application/json"}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        if token := self._tokens.current():
            headers["Authorization"] = f"Bearer {token}"
        with _translated(call, self._config.server):
            response = await self._session.request(
                call.method,
                self._config.server + call.path,
                params=call.query,
                data=call.body,
                headers=headers,
                server_hostname=self._config.tls_server_name,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=limit_s, sock_connect=CONNECT_TIMEOUT_S),
            )
            if 200 <= response.status < 300:
                return response
            async with response:
                body = await response.content.read(REFUSAL_BODY_BYTES)
        retry_after = response.headers.get("Retry-After")
        raise refusal_of_answer(str(call), response.status, body, retry_after)


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
