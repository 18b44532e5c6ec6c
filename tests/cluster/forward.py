"""A loopback port of the machine that leads to the API server inside the cloud's namespace.

Started with the listening socket already open: a socket stays in the namespace it was made in, so
this process accepts in the machine's own network and connects in the cloud's.
`python -m tests.cluster.forward DESCRIPTOR ADDRESS PORT`
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from functools import partial

_CHUNK_BYTES = 65536


async def serve(listener: socket.socket, address: str, port: int) -> None:
    """Forward every connection until cancelled."""
    server = await asyncio.start_server(partial(_forward, address, port), sock=listener)
    async with server:
        await server.serve_forever()


async def _forward(
    address: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    with contextlib.suppress(OSError):
        try:
            far_reader, far_writer = await asyncio.open_connection(address, port)
            async with asyncio.TaskGroup() as directions:
                directions.create_task(_pump(reader, far_writer))
                directions.create_task(_pump(far_reader, writer))
        finally:
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(_CHUNK_BYTES):
                writer.write(chunk)
                await writer.drain()
    finally:
        with contextlib.suppress(OSError):
            writer.write_eof() if writer.can_write_eof() else writer.close()


def main() -> None:
    descriptor, address, port = sys.argv[1:]
    asyncio.run(serve(socket.socket(fileno=int(descriptor)), address, int(port)))


if __name__ == "__main__":
    main()
