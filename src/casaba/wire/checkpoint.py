"""The checkpoint: one JSON file per prepared claim, so that a prepare costs the same with any
number of claims and a damaged file loses one claim only.

`{"version": 1, "checksum": CRC-32 of the entry's bytes, "entry": {…}}`
"""

import zlib

import msgspec

from casaba.errors import InvalidInput
from casaba.model.prepared import CheckpointEntry

VERSION = 1


class _Envelope(msgspec.Struct, frozen=True):
    version: int
    checksum: int
    entry: msgspec.Raw


def build_entry(entry: CheckpointEntry) -> bytes:
    """The bytes of an entry's file."""
    body = msgspec.json.encode(entry)
    envelope = _Envelope(version=VERSION, checksum=zlib.crc32(body), entry=msgspec.Raw(body))
    return msgspec.json.encode(envelope) + b"\n"


def parse_entry(content: bytes) -> CheckpointEntry:
    """Read an entry; raises InvalidInput when it is damaged or of another version."""
    try:
        envelope = msgspec.json.decode(content, type=_Envelope)
        if envelope.version != VERSION:
            raise InvalidInput(f"version {envelope.version}, this release reads {VERSION}")
        body = bytes(envelope.entry)
        if zlib.crc32(body) != envelope.checksum:
            raise InvalidInput("wrong checksum")
        return msgspec.json.decode(body, type=CheckpointEntry)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"not an entry: {error}") from error
