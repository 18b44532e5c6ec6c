"""The operator's socket of a node agent: HTTP on a unix socket that only its owner may open.

`GET /` is one JSON document, made anew for each request.
"""

import contextlib
import http.client
import logging
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from casaba.errors import HostError

log = logging.getLogger(__name__)

OWNER_ONLY = 0o600
_BACKLOG = 16
_STOP_S = 2.0
_ANSWER_MAX_BYTES = 64 << 20


class OperatorServer:
    """Serves a document; use as `async with OperatorServer(path, document)`.

    An agent that starts while another still runs takes the path over; the other leaves it alone.
    """

    def __init__(self, path: Path, document: Callable[[], Awaitable[bytes]]) -> None:
        self._path = path
        self._document = document
        self._runner: web.AppRunner | None = None
        self._inode = 0

    async def __aenter__(self) -> Self:
        """Listen; raises HostError when there can be no socket."""
        app = web.Application()
        app.router.add_get("/", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_STOP_S)
        await runner.setup()
        try:
            listening = self._private_socket()
            await web.SockSite(runner, listening, backlog=_BACKLOG).start()
            self._inode = self._path.stat().st_ino
        except OSError as error:
            await runner.cleanup()
            reason = error.strerror or error
            raise HostError(f"can't listen on {self._path}: {reason}") from error
        self._runner = runner
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        with contextlib.suppress(OSError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()

    def _private_socket(self) -> socket.socket:
        """Bound under another name, closed to others, and only then put in its place.

        Nobody can connect before it listens.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        made = self._path.with_name(f".{self._path.name}.new")
        made.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.setblocking(False)
            listening.bind(str(made))
            made.chmod(OWNER_ONLY)
            made.rename(self._path)
        except OSError:
            listening.close()
            made.unlink(missing_ok=True)
            raise
        return listening

    async def _answer(self, _: web.Request) -> web.Response:
        try:
            document = await self._document()
        except Exception as error:  # a fault of one answer is no reason to end the process
            log.exception("operator.not_answered")
            return web.Response(status=500, text=f"{error!r}\n")
        return web.Response(body=document, content_type="application/json")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path
        self._timeout_s = timeout_s

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self._timeout_s)
        self.sock.connect(str(self._path))


def fetch_document(path: Path, timeout_s: float) -> bytes:
    """The document of the agent behind a socket. Blocking; raises HostError."""
    connection = _UnixConnection(path, timeout_s)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        content = answer.read(_ANSWER_MAX_BYTES)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or error
        raise HostError(f"no node agent answers at {path}: {reason}") from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        words = content.decode(errors="replace").strip()
        raise HostError(f"the node agent at {path} failed: {words}")
    return content
