"""The region file: what native/include/region.def lays out.

A tenant can write to it: a parsed region says what the tenant's processes claim, no more.
"""

import struct

from casaba.errors import InvalidInput
from casaba.model.limits import CardUsage
from casaba.wire import _region_layout as layout

REGION_BYTES = layout.REGION_SIZE


def build_region() -> bytes:
    """A fresh region: nobody has a slot, nothing is charged."""
    content = bytearray(layout.REGION_SIZE)
    for (offset, code), value in (
        (layout.REGION_FILE_MAGIC, layout.REGION_MAGIC),
        (layout.REGION_FILE_VERSION, layout.REGION_VERSION),
        (layout.REGION_FILE_SIZE, layout.REGION_SIZE),
    ):
        struct.pack_into(code, content, offset, value)
    return bytes(content)


def is_region(content: bytes) -> bool:
    """Whether a file's size and first words are those of a region of this version."""
    fresh = build_region()
    words = layout.REGION_FILE_HIGH_WATER[0]
    return len(content) == len(fresh) and content[:words] == fresh[:words]


def parse_usage(content: bytes, card_count: int) -> tuple[CardUsage, ...]:
    """What the slots of a region add up to, per card in the policy's order.

    Slots of dead processes that nobody has swept yet are counted too.
    Raises InvalidInput for a file of another size or version.
    """
    if not is_region(content):
        raise InvalidInput(
            f"region: {len(content)} bytes that are not a region of version "
            f"{layout.REGION_VERSION}; a tenant damaged it"
        )
    return tuple(_card_usage(content, number) for number in range(card_count))


def _card_usage(content: bytes, number: int) -> CardUsage:
    at = layout.REGION_FILE_CARDS + number * layout.REGION_CARD_BYTES
    return CardUsage(
        asked_bytes=_sum(content, at, layout.REGION_CARD_ASKED),
        overhead_bytes=_sum(content, at, layout.REGION_CARD_OVERHEAD),
    )


def _sum(content: bytes, at: int, place: tuple[int, str]) -> int:
    offset, code = place
    return sum(struct.unpack_from(code, content, at + offset))
