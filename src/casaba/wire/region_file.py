"""The region file: what native/include/region.def lays out.

A tenant can write to it: a parsed region says what the tenant's processes claim, no more.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from casaba.errors import InvalidInput
from casaba.model.limits import CardUsage
from casaba.model.usage import CardTimes, ProcessUsage
from casaba.wire import _region_layout as layout

Content = bytes | bytearray
"""A region's content."""

REGION_BYTES = layout.REGION_SIZE

_WORD = struct.Struct("<Q")
_NUMBER = struct.Struct(layout.REGION_FILE_HIGH_WATER[1])
_WORD_BYTES = _WORD.size

_SLOT = struct.Struct(f"<{layout.REGION_SLOT_BYTES // _WORD_BYTES}Q")
"""A whole slot at once: its fields are words."""

_PID = layout.REGION_SLOT_PID[0] // _WORD_BYTES
_START_TIME_NS = layout.REGION_SLOT_START_TIME_NS[0] // _WORD_BYTES
_GUARD_VERSION = layout.REGION_SLOT_GUARD_VERSION[0] // _WORD_BYTES
_REFUSALS = layout.REGION_SLOT_REFUSALS[0] // _WORD_BYTES
_PEAK = layout.REGION_SLOT_PEAK[0] // _WORD_BYTES
_GPU_TIME_NS = layout.REGION_SLOT_GPU_TIME_NS[0] // _WORD_BYTES
_WAIT_NS = layout.REGION_SLOT_WAIT_NS[0] // _WORD_BYTES
_LAST_LAUNCH_NS = layout.REGION_SLOT_LAST_LAUNCH_NS[0] // _WORD_BYTES
_LAUNCHES = layout.REGION_SLOT_LAUNCHES[0] // _WORD_BYTES
_KINDS = layout.REGION_SLOT_KINDS[0] // _WORD_BYTES
_PID_NAMESPACE = layout.REGION_SLOT_PID_NAMESPACE[0] // _WORD_BYTES

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


_FRESH = build_region()
_FIRST_WORDS = _FRESH[: layout.REGION_FILE_HIGH_WATER[0]]


def is_region(content: Content) -> bool:
    """Whether a file's size and first words are those of a region of this version."""
    return len(content) == REGION_BYTES and content[: len(_FIRST_WORDS)] == _FIRST_WORDS


HEAD_BYTES = layout.REGION_FILE_SLOTS + 16 * layout.REGION_SLOT_BYTES
"""What is read first: all but the cards, for as many processes as most tenants have."""

CARD_BYTES = layout.REGION_CARD_BYTES


@dataclass(frozen=True)
class Region:
    """A region's parts as they were read; a parser of what its tenant's processes claim."""

    start: Content
    """From the file's beginning to the end of the slots that were ever used."""
    cards: tuple[Content, ...]
    """CARD_BYTES of each card of the policy."""
    id: int = 0
    """Inode of its file, where there is one."""

    @property
    def refusals(self) -> int:
        """Of all processes since the region was made."""
        return _word(self.start, layout.REGION_FILE_REFUSALS, 0)

    @property
    def times(self) -> tuple[CardTimes, ...]:
        """Time on each card of all processes since the region was made."""
        return tuple(
            CardTimes(
                busy_ns=_word(card, layout.REGION_CARD_COMPUTE, layout.COMPUTE_BUSY),
                wait_ns=_word(card, layout.REGION_CARD_COMPUTE, layout.COMPUTE_WAIT),
            )
            for card in self.cards
        )

    def processes(self, lives: Callable[[int], bool] = lambda _: True) -> dict[int, ProcessUsage]:
        """What each slot that was ever used says, by slot number; dead ones are among them.

        `lives` chooses slots by number.
        """
        begin = layout.REGION_FILE_SLOTS
        end = begin + _used_slots(self.start) * layout.REGION_SLOT_BYTES
        slots = enumerate(_SLOT.iter_unpack(self.start[begin:end]))
        return {
            slot: _process(slot, words, tuple([_card_usage(card, slot) for card in self.cards]))
            for slot, words in slots
            if words[_PID] and lives(slot)
        }


def start_bytes(head: Content) -> int:
    """How much of the file is needed beside the cards, given its first HEAD_BYTES.

    Raises InvalidInput when it is no region.
    """
    _check_first_words(head, len(head))
    return layout.REGION_FILE_SLOTS + _used_slots(head) * layout.REGION_SLOT_BYTES


def card_offset(number: int) -> int:
    """Where a card's part begins."""
    return layout.REGION_FILE_CARDS + number * layout.REGION_CARD_BYTES


def parse_refusals(content: Content) -> int:
    """Refusals of all processes since the region was made; raises InvalidInput."""
    return parse_region(content, 0).refusals


def parse_processes(content: Content, card_count: int) -> dict[int, ProcessUsage]:
    """What each slot that was ever used says, by slot number; dead ones are among them.

    Raises InvalidInput for a file of another size or version.
    """
    return parse_region(content, card_count).processes()


def parse_region(content: Content, card_count: int) -> Region:
    """The parts of a whole file; raises InvalidInput for one of another size or version."""
    if len(content) != REGION_BYTES:
        raise _no_region(len(content))
    _check_first_words(content, len(content))
    offsets = (card_offset(number) for number in range(card_count))
    return Region(content, tuple(content[at : at + CARD_BYTES] for at in offsets))


def _used_slots(content: Content) -> int:
    (slots,) = _NUMBER.unpack_from(content, layout.REGION_FILE_HIGH_WATER[0])
    return min(int(slots), layout.REGION_SLOTS)


def lock_offset(slot: int) -> int:
    """The byte of the file whose lock the slot's living owner holds."""
    return layout.REGION_LOCK_BASE + slot


def _check_first_words(content: Content, size: int) -> None:
    if content[: len(_FIRST_WORDS)] != _FIRST_WORDS:
        raise _no_region(size)


def _no_region(size: int) -> InvalidInput:
    return InvalidInput(
        f"region: {size} bytes that are not a region of version {layout.REGION_VERSION}; "
        "a tenant damaged it, or its guard is of another release"
    )


def _process(slot: int, words: tuple[int, ...], cards: tuple[CardUsage, ...]) -> ProcessUsage:
    return ProcessUsage(
        slot=slot,
        pid=words[_PID],
        pid_namespace=words[_PID_NAMESPACE],
        started_ns=words[_START_TIME_NS],
        guard_version=words[_GUARD_VERSION],
        cards=cards,
        kinds_bytes=_kinds(words, sum([card.asked_bytes for card in cards])),
        peak_bytes=words[_PEAK],
        refusals=words[_REFUSALS],
        launches=words[_LAUNCHES],
        gpu_time_ns=words[_GPU_TIME_NS],
        wait_ns=words[_WAIT_NS],
        last_launch_ns=words[_LAST_LAUNCH_NS],
    )


def _kinds(words: tuple[int, ...], asked_bytes: int) -> tuple[int, ...]:
    """By kind; what the kinds but contexts leave of the asked is plain device memory."""
    told = list(words[_KINDS : _KINDS + layout.REGION_KINDS])
    others = sum(told) - told[layout.KIND_DEVICE] - told[layout.KIND_CONTEXT]
    told[layout.KIND_DEVICE] = max(asked_bytes - others, 0)
    return tuple(told)


def _card_usage(card: Content, slot: int) -> CardUsage:
    return CardUsage(
        asked_bytes=_word(card, layout.REGION_CARD_ASKED, slot),
        overhead_bytes=_word(card, layout.REGION_CARD_OVERHEAD, slot),
    )


def _word(card: Content, place: tuple[int, str], number: int) -> int:
    return int(_WORD.unpack_from(card, place[0] + number * _WORD_BYTES)[0])
