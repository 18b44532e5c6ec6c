"""The byte stream of a watch: chunks in, events out; one JSON object a line.

Source: Kubernetes API concepts, "Efficient detection of changes".
"""

from typing import Any, Generic, TypeVar, cast, get_type_hints

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from casaba.wire.kubernetes import ObjectMeta, WatchedObject, WatchEvent

T = TypeVar("T")

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Far above what etcd can hold (1.5 MiB); bounds the memory that a broken server can take."""

CHANGES = frozenset(("ADDED", "MODIFIED", "DELETED"))
"""The types of events that tell of an object."""

_decoder = Decoder(WatchEvent)


class BrokenStream(ValueError):
    """The bytes are not a watch stream."""


class WatchStream:
    """Cuts chunks into whole lines, however the network has cut them.

    A rest without line end is kept for the next chunk; when the stream ends it is dropped with
    this object, for a half event says nothing.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._rest_bytes = 0

    def complete(self, chunk: bytes) -> bytes:
        """The lines completed by `chunk`, each with its end; raises BrokenStream."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._keep(chunk)
            return b""
        lines = b"".join((*self._rest, memoryview(chunk)[:end]))
        self._rest, self._rest_bytes = [], 0
        self._keep(chunk[end:])
        return lines

    def feed(self, chunk: bytes) -> tuple[WatchEvent, ...]:
        """The events completed by `chunk`; raises BrokenStream."""
        return events_of(self.complete(chunk))

    def _keep(self, part: bytes) -> None:
        self._rest_bytes += len(part)
        if self._rest_bytes > MAX_EVENT_BYTES:
            raise BrokenStream(f"an event is larger than {MAX_EVENT_BYTES} bytes")
        if part:
            self._rest.append(part)


class ChangeDecoder(Generic[T]):
    """Decodes lines of a watch that hold nothing but changes of objects of one form, fast."""

    def __init__(self, form: type[T]) -> None:
        typed = isinstance(form, type) and issubclass(form, Struct)
        known = typed and get_type_hints(form).get("metadata") is ObjectMeta
        # The form is only known at run time, which mypy has no words for.
        watched = WatchedObject[form] if known else None  # type: ignore[valid-type]
        self._decoder = Decoder(cast("type[WatchedObject[T]]", watched)) if watched else None

    def decode(self, lines: bytes) -> list[WatchedObject[T]] | None:
        """The changes; None if this is not the way: another form, an error, a bookmark."""
        if self._decoder is None:
            return None
        try:
            changes = self._decoder.decode_lines(lines)
        except DecodeError:
            return None
        plain = all(change.type in CHANGES and _has_name(change.object) for change in changes)
        return changes if plain else None


def events_of(lines: bytes) -> tuple[WatchEvent, ...]:
    """The events on some lines, each by itself; raises BrokenStream."""
    return tuple(_decode(line) for line in lines.split(b"\n") if line.strip())


def _decode(line: bytes) -> WatchEvent:
    try:
        return _decoder.decode(line)
    except DecodeError as error:
        raise BrokenStream(f"a line of {len(line)} bytes is not a watch event: {error}") from None


def _has_name(object_: Any) -> bool:
    return bool(object_.metadata.name)
