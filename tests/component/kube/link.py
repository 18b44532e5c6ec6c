"""A TCP link to a server that can be cut, so that neither side is told, or be broken."""

import asyncio
import contextlib
import socket
from dataclasses import replace
from urllib.parse import urlsplit

from casaba.kube import KubeConfig


class Link:
    """Forwards connections; `async with Link(config) as link`, then use `link.config`.

    It listens on a loopback port, or on a socket that is given.
    """

    def __init__(self, config: KubeConfig, listener: socket.socket | None = None) -> None:
        self._behind = config
        self._listener = listener
        self._open = asyncio.Event()
        self._open.set()
        self._refusing = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Link":
        listener = self._listener or socket.create_server(("127.0.0.1", 0))
        self._server = await asyncio.start_server(self._serve, sock=listener)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def config(self) -> KubeConfig:
        """Access through this link."""
        scheme = urlsplit(self._behind.server).scheme
        port = self._server.sockets[0].getsockname()[1]
        return replace(self._behind, server=f"{scheme}://127.0.0.1:{port}")

    def cut(self) -> None:
        """Let nothing pass, without a word to anybody."""
        self._open.clear()

    def drop(self) -> None:
        """Close all connections, and new ones at once."""
        self._refusing = True
        for task in self._tasks:
            task.cancel()

    def mend(self) -> None:
        """Let everything pass again, also what waited."""
        self._refusing = False
        self._open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self._refusing:
            writer.close()
            return
        self._tasks.add(task)
        behind = urlsplit(self._behind.server)
        try:
            there_reader, there_writer = await asyncio.open_connection(behind.hostname, behind.port)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._copied(reader, there_writer))
                group.create_task(self._copied(there_reader, writer))
        except (OSError, asyncio.CancelledError):
            writer.close()
        finally:
            self._tasks.discard(task)

    async def _copied(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError):
                while chunk := await reader.read(65536):
                    await self._open.wait()
                    writer.write(chunk)
                    await writer.drain()
        finally:
            writer.close()
