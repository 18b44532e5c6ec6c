"""The per-card schedule: what native/include/schedule.def lays out.

Every tenant of the card can write to it; this side makes it whole, and reads who has signed in.
"""

import functools
import struct
from collections.abc import Callable

from casaba.model.ids import GpuUuid, gpu_uuid_bytes
from casaba.wire import _schedule_layout as layout

SCHEDULE_BYTES = layout.SCHEDULE_SIZE

_TENANTS = 4096
"""Ids of so many are remembered: each is asked for at every scrape."""

_FNV_OFFSET, _FNV_PRIME, _WORD = 0xCBF29CE484222325, 0x100000001B3, 2**64 - 1


def build_schedule(gpu: GpuUuid) -> bytes:
    """A fresh schedule of a card: nobody is registered. Raises InvalidInput."""
    content = bytearray(layout.SCHEDULE_SIZE)
    for (offset, code), value in (
        (layout.SCHEDULE_FILE_MAGIC, layout.SCHEDULE_MAGIC),
        (layout.SCHEDULE_FILE_VERSION, layout.SCHEDULE_VERSION),
        (layout.SCHEDULE_FILE_SIZE, layout.SCHEDULE_SIZE),
        (layout.SCHEDULE_FILE_UUID, gpu_uuid_bytes(gpu)),
    ):
        struct.pack_into(code, content, offset, value)
    return bytes(content)


def is_schedule(content: bytes, gpu: GpuUuid) -> bool:
    """Whether a file's size and header are those of the card's schedule of this version."""
    fresh = build_schedule(gpu)
    header = layout.SCHEDULE_FILE_RESERVED1[0]
    return len(content) == len(fresh) and content[:header] == fresh[:header]


@functools.lru_cache(_TENANTS)
def tenant_id(claim: str, request: str) -> int:
    """What a budget is called in a schedule: FNV-1a of its path, 64 bits, never 0."""
    hashed = _FNV_OFFSET
    for byte in f"{claim}/{request}".encode():
        hashed = (hashed ^ byte) * _FNV_PRIME & _WORD
    return hashed or 1


def tenant_lock(place: int) -> int:
    """The byte of the file that each living process of a tenant has locked for reading."""
    return layout.SCHEDULE_LOCK_TENANT + place


def parse_tenants(content: bytes, lives: Callable[[int], bool]) -> frozenset[int]:
    """The ids of the tenants that have living processes; `lives` tells of a place.

    A process signs in when it first launches. `content` is a whole schedule's.
    """
    code = layout.SCHEDULE_TENANT_ID
    begin, size = layout.SCHEDULE_FILE_TENANTS + code[0], layout.SCHEDULE_TENANT_BYTES
    places = range(layout.SCHEDULE_TENANTS)
    ids = [int(struct.unpack_from(code[1], content, begin + place * size)[0]) for place in places]
    return frozenset(id_ for place, id_ in zip(places, ids, strict=True) if id_ and lives(place))
