"""The region file: what native/include/region.def lays out.

A tenant can write to it: a parsed region says what the tenant's processes claim, no more.
"""

import struct

from casaba.errors import InvalidInput
from casaba.model.limits import CardUsage
from casaba.model.usage import ProcessUsage
from casaba.wire import _region_layout as layout

REGION_BYTES = layout.REGION_SIZE

KINDS = tuple(
    name.removeprefix("KIND_").lower()
    for name, _ in sorted(
        ((name, value) for name, value in vars(layout).items() if name.startswith("KIND_")),
        key=lambda item: int(item[1]),
    )
)
"""Names of the kinds of memory, in the order of a slot's words."""


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


def parse_refusals(content: bytes) -> int:
    """Refusals of all processes since the region was made; raises InvalidInput."""
    _check(content)
    return _number(content, 0, layout.REGION_FILE_REFUSALS)


def parse_processes(content: bytes, card_count: int) -> dict[int, ProcessUsage]:
    """What each slot that was ever used says, by slot number; dead ones are among them.

    Raises InvalidInput for a file of another size or version.
    """
    _check(content)
    used = min(_number(content, 0, layout.REGION_FILE_HIGH_WATER), layout.REGION_SLOTS)
    slots = {slot: _process(content, slot, card_count) for slot in range(used)}
    return {slot: process for slot, process in slots.items() if process.pid}


def lock_offset(slot: int) -> int:
    """The byte of the file whose lock the slot's living owner holds."""
    return layout.REGION_LOCK_BASE + slot


def _check(content: bytes) -> None:
    if not is_region(content):
        raise InvalidInput(
            f"region: {len(content)} bytes that are not a region of version "
            f"{layout.REGION_VERSION}; a tenant damaged it, or its guard is of another release"
        )


def _process(content: bytes, slot: int, card_count: int) -> ProcessUsage:
    at = layout.REGION_FILE_SLOTS + slot * layout.REGION_SLOT_BYTES
    cards = tuple(_card_usage(content, slot, card) for card in range(card_count))
    return ProcessUsage(
        pid=_number(content, at, layout.REGION_SLOT_PID),
        guard_version=_number(content, at, layout.REGION_SLOT_GUARD_VERSION),
        cards=cards,
        kinds_bytes=_kinds(content, at, sum(card.asked_bytes for card in cards)),
        peak_bytes=_number(content, at, layout.REGION_SLOT_PEAK),
        refusals=_number(content, at, layout.REGION_SLOT_REFUSALS),
        launches=_number(content, at, layout.REGION_SLOT_LAUNCHES),
        gpu_time_ns=_number(content, at, layout.REGION_SLOT_GPU_TIME_NS),
        wait_ns=_number(content, at, layout.REGION_SLOT_WAIT_NS),
        last_launch_ns=_number(content, at, layout.REGION_SLOT_LAST_LAUNCH_NS),
    )


def _kinds(content: bytes, at: int, asked_bytes: int) -> tuple[int, ...]:
    """By kind; what the kinds but contexts leave of the asked is plain device memory."""
    offset, code = layout.REGION_SLOT_KINDS
    told = list(struct.unpack_from(code, content, at + offset))
    others = sum(told) - told[layout.KIND_DEVICE] - told[layout.KIND_CONTEXT]
    told[layout.KIND_DEVICE] = max(asked_bytes - others, 0)
    return tuple(told)


def _card_usage(content: bytes, slot: int, card: int) -> CardUsage:
    at = layout.REGION_FILE_CARDS + card * layout.REGION_CARD_BYTES
    return CardUsage(
        asked_bytes=_word(content, at, layout.REGION_CARD_ASKED, slot),
        overhead_bytes=_word(content, at, layout.REGION_CARD_OVERHEAD, slot),
    )


def _word(content: bytes, at: int, place: tuple[int, str], number: int) -> int:
    offset, code = place
    return int(struct.unpack_from(code, content, at + offset)[number])


def _number(content: bytes, at: int, place: tuple[int, str]) -> int:
    offset, code = place
    return int(struct.unpack_from(code, content, at + offset)[0])
