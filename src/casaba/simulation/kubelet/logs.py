"""The log of one run of a container: lines with their times in a bounded pair of files.

Lines are stored as container runtimes do (CRI logging format): time, stream, F for a whole line or
P for a piece of a long one, text.
"""

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

LINE_PIECE_BYTES = 16 * 1024
"""Longer lines are stored in pieces."""


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """Which part of a log is wanted, as in the API's PodLogOptions."""

    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_ns: int = 0
    """Only lines from this time on, in nanoseconds since 1970."""
    limit_bytes: int | None = None
    stream: str = ""
    """stdout or stderr; empty for both."""


class ContainerLog:
    """Appended to while the container runs; any number of readers may follow it."""

    def __init__(self, path: Path, file_bytes: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._older = path.with_suffix(".older")
        self._file_bytes = file_bytes
        self._file = path.open("ab")
        self._unfinished: dict[str, bytes] = {}
        self._news = asyncio.Event()

    @property
    def finished(self) -> bool:
        """Whether nothing more will come."""
        return self._file.closed

    def feed(self, stream: str, received: bytes) -> None:
        """Take what came on `stdout` or `stderr`; whole lines are stored."""
        *lines, rest = (self._unfinished.get(stream, b"") + received).split(b"\n")
        for line in lines:
            self._store(stream, line, whole=True)
        while len(rest) > LINE_PIECE_BYTES:
            self._store(stream, rest[:LINE_PIECE_BYTES], whole=False)
            rest = rest[LINE_PIECE_BYTES:]
        self._unfinished[stream] = rest
        self._tell()

    def finish(self) -> None:
        """The container has ended; a line without an end is one too."""
        if self.finished:
            return
        for stream, rest in self._unfinished.items():
            if rest:
                self._store(stream, rest, whole=False)
        self._file.close()
        self._tell()

    def remove(self) -> None:
        """Delete the files."""
        self.finish()
        self.path.unlink(missing_ok=True)
        self._older.unlink(missing_ok=True)

    async def read(self, options: LogOptions) -> AsyncGenerator[bytes, None]:
        """The wanted part; with `follow` also all that comes until the container ends."""
        limit = options.limit_bytes
        async with aclosing(self._texts(options)) as texts:
            async for text in texts:
                if limit is not None:
                    text = text[:limit]
                    limit -= len(text)
                yield text
                if limit == 0:
                    return

    async def _texts(self, options: LogOptions) -> AsyncGenerator[bytes, None]:
        lines = list(self._stored(self._older))
        file = self.path.open("rb")
        try:
            lines += file.readlines()
            if options.tail_lines is not None:
                lines = list(deque(lines, maxlen=options.tail_lines))
            while True:
                ended, rotated, news = self.finished, self._was_rotated(file), self._news
                for line in (*lines, *file.readlines()):
                    if text := _shown(line, options):
                        yield text
                lines = []
                if rotated:
                    file.close()
                    file = self.path.open("rb")
                elif ended or not options.follow:
                    return
                else:
                    await news.wait()
        finally:
            file.close()

    def _was_rotated(self, file: BinaryIO) -> bool:
        """Whether nothing more will come to this file, but to another one."""
        return os.fstat(file.fileno()).st_ino != self.path.stat().st_ino

    def _stored(self, path: Path) -> Iterator[bytes]:
        if path.exists():
            with path.open("rb") as file:
                yield from file

    def _store(self, stream: str, line: bytes, *, whole: bool) -> None:
        tag = b"F" if whole else b"P"
        self._file.write(b" ".join((_now(), stream.encode(), tag, line)) + b"\n")
        if self._file.tell() > self._file_bytes:
            self._file.close()
            self.path.rename(self._older)
            self._file = self.path.open("ab")

    def _tell(self) -> None:
        if not self._file.closed:
            self._file.flush()
        self._news.set()
        self._news = asyncio.Event()


def _now() -> bytes:
    seconds, rest_ns = divmod(time.time_ns(), 1_000_000_000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest_ns:09}Z".encode()


def time_ns(text: str) -> int:
    """An RFC 3339 time in nanoseconds since 1970; raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return round(moment.timestamp() * 1_000_000_000)


def _shown(line: bytes, options: LogOptions) -> bytes:
    stamp, stream, tag, text = line.split(b" ", 3)
    if options.stream and options.stream.encode() != stream:
        return b""
    if options.since_ns and time_ns(stamp.decode()) < options.since_ns:
        return b""
    if tag == b"P":
        text = text.removesuffix(b"\n")
    return b"%s %s" % (stamp, text) if options.timestamps else text
