"""The per-card schedule: what native/include/schedule.def lays out.

Every tenant of the card can write to it; all that this side does is to make it whole.
"""

import struct

from casaba.model.ids import GpuUuid, gpu_uuid_bytes
from casaba.wire import _schedule_layout as layout

SCHEDULE_BYTES = layout.SCHEDULE_SIZE


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
