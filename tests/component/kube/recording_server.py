"""A server that records what it is asked and answers what it was told to."""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from multidict import CIMultiDictProxy


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: CIMultiDictProxy[str]
    body: bytes
    peer_certificate: Mapping[str, Any] | None

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """One answer to give."""

    body: Any = field(default_factory=dict)
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> web.Response:
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        response = web.Response(body=body, status=self.code, headers=self.headers)
        response.content_type = "application/json"
        return response


class RecordingServer:
    """Answers `replies` in turn, then empty objects."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.asked: list[Asked] = []
        self.replies: list[Reply] = []
        self.close_connections = False
        """Whether each answer ends its connection."""

    async def __aenter__(self) -> "RecordingServer":
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(
            Asked(
                method=request.method,
                path=request.path,
                query=dict(request.query),
                headers=request.headers,
                body=await request.read(),
                peer_certificate=request.get_extra_info("peercert"),
            )
        )
        response = (self.replies.pop(0) if self.replies else Reply()).response()
        if self.close_connections:
            response.force_close()
        return response
