"""Unix sockets that behave badly, on threads of their own: nothing of them is left to the loop."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from socketserver import BaseRequestHandler, UnixStreamServer


class _HangUp(BaseRequestHandler):
    """Says nothing; the server closes the connection."""


@contextlib.contextmanager
def hanging_up(path: Path) -> Iterator[None]:
    """A socket that ends every connection as soon as it is made."""
    with UnixStreamServer(str(path), _HangUp) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
