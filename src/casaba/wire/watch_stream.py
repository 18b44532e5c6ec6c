"""The byte stream of a watch: chunks in, events out; one JSON object a line.

Source: Kubernetes API concepts, "Efficient detection of changes".
"""

from msgspec import DecodeError
from msgspec.json import Decoder

from casaba.wire.kubernetes import WatchEvent

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Far above what etcd can hold (1.5 MiB); bounds the memory that a broken server can take."""

_decoder = Decoder(WatchEvent)


class BrokenStream(ValueError):
    """The bytes are not a watch stream."""


class WatchStream:
    """Cuts chunks into events, however the network has cut them.

    A rest without line end is kept for the next chunk; when the stream ends it is dropped with
    this object, for a half event says nothing.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._rest_bytes = 0

    def feed(self, chunk: bytes) -> tuple[WatchEvent, ...]:
        """The events completed by `chunk`; raises BrokenStream."""
        first, *lines = chunk.split(b"\n")
        self._keep(first)
        if not lines:
            return ()
        complete = [b"".join(self._rest), *lines[:-1]]
        self._rest, self._rest_bytes = [], 0
        self._keep(lines[-1])
        return tuple(_decode(line) for line in complete if line.strip())

    def _keep(self, part: bytes) -> None:
        self._rest_bytes += len(part)
        if self._rest_bytes > MAX_EVENT_BYTES:
            raise BrokenStream(f"an event is larger than {MAX_EVENT_BYTES} bytes")
        if part:
            self._rest.append(part)


def _decode(line: bytes) -> WatchEvent:
    try:
        return _decoder.decode(line)
    except DecodeError as error:
        raise BrokenStream(f"a line of {len(line)} bytes is not a watch event: {error}") from None
