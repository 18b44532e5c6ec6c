"""HTTPS for an aiohttp application whose certificate is replaced while it serves.

Every handshake gets the newest pair that was found good. A new pair is a new SSL context, which
`sni_callback` puts in the place of the listener's own: loading a pair into a context in use
breaks it if the two do not match. Connections that are open go on.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from aiohttp import web

from casaba.errors import HostError
from casaba.net.certificate_pair import (
    BadPair,
    CertificateFiles,
    CertificatePair,
    PairContents,
    TlsVersion,
    server_context,
    tried_pair,
)
from casaba.net.http_metrics import parse_address

log = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT_S = 10.0

KEEP_ALIVE_S = 120.0
"""Longer than the 90 s of Go's clients: they end idle connections, and no request meets our end."""

_BACKLOG = 512


class CertificateObserver(Protocol):
    """Hears what becomes of certificates."""

    def taken(self, pair: CertificatePair) -> None:
        """A pair is served from now on."""

    def refused(self, reason: str) -> None:
        """A pair was found that can't be served; once for each."""


class TlsListener:
    """Use as `async with TlsListener(…) as listener`, and let `follow_files` run meanwhile.

    Without a good pair it listens and ends every handshake, until there is one.
    """

    def __init__(
        self,
        address: str,
        app: web.Application,
        files: CertificateFiles,
        observer: CertificateObserver,
        *,
        minimum_version: TlsVersion = "1.3",
        look_every_s: float,
        shutdown_s: float,
    ) -> None:
        """`address` as of `parse_address`; requests in work have `shutdown_s` at the end."""
        self._host, self._wanted_port = parse_address(address)
        self._files = files
        self._observer = observer
        self._minimum: TlsVersion = minimum_version
        self._look_every_s = look_every_s
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=True,
            keepalive_timeout=KEEP_ALIVE_S,
            shutdown_timeout=shutdown_s,
        )
        self._listener: asyncio.Server | None = None
        self._pair: CertificatePair | None = None
        self._seen: tuple[PairContents | None, str] | None = None
        """What was found last, and why it was refused."""

    @property
    def port(self) -> int:
        """The port it listens on; only known inside the block."""
        assert self._listener is not None
        return int(self._listener.sockets[0].getsockname()[1])

    def trouble(self, clock: Callable[[], float] = time.time) -> str | None:
        """Why clients can't trust what is served now; None if all is well."""
        pair, now_s = self._pair, clock()
        if pair is None:
            reason = self._seen[1] if self._seen else "nobody has looked yet"
            return f"no certificate in {self._files.folder}: {reason}"
        if pair.expires_at_s <= now_s:
            return "the certificate has expired"
        if (end_s := pair.authority_expires_at_s) is not None and end_s <= now_s:
            return "the certificate's authority has expired"
        return None

    async def __aenter__(self) -> Self:
        """Listen, with the pair that is there; raises HostError when the address can't be taken."""
        self.look()
        context = server_context(self._minimum)
        context.sni_callback = self._choose
        await self._runner.setup()
        assert self._runner.server is not None
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._runner.server,
                self._host,
                self._wanted_port,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S,
                backlog=_BACKLOG,
            )
        except OSError as error:
            await self._runner.cleanup()
            where = f"{self._host or '*'}:{self._wanted_port}"
            reason = error.strerror or error
            raise HostError(f"can't listen on {where}: {reason}; choose another address") from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._listener is not None:
            self._listener.close()
        await self._runner.cleanup()

    async def follow_files(self) -> None:
        """Take every good pair soon after it appears; never returns."""
        while True:
            await asyncio.sleep(self._look_every_s)
            self.look()

    def look(self) -> None:
        """Take the pair in the files if it is new and good; a bad one changes nothing.

        One that was refused is tried each time: its day may come.
        """
        contents: PairContents | None = None
        try:
            contents = self._files.read()
            if self._seen != (contents, ""):
                self._take(tried_pair(contents, self._minimum))
                self._seen = (contents, "")
        except BadPair as error:
            self._refuse(contents, str(error))

    def _take(self, pair: CertificatePair) -> None:
        self._pair = pair
        log.info("certificate.taken", extra={"expires_at_s": pair.expires_at_s})
        self._observer.taken(pair)

    def _refuse(self, contents: PairContents | None, reason: str) -> None:
        if self._seen == (contents, reason):
            return
        self._seen = (contents, reason)
        log.error(
            "certificate.refused",
            extra={
                "folder": str(self._files.folder),
                "reason": reason,
                "served": "the one before" if self._pair else "none",
            },
        )
        self._observer.refused(reason)

    def _choose(
        self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> int | None:
        """Called in every handshake, with a server name or without."""
        if self._pair is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._pair.context
        return None
