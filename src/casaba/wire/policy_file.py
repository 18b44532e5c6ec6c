"""The policy file: what native/include/policy.def lays out.

Two whole copies, each with a CRC-32; the low bit of `index` names the valid one.
"""

import struct
import zlib

from casaba.errors import InvalidInput
from casaba.model.ids import gpu_uuid_bytes, gpu_uuid_text
from casaba.model.limits import CardLimits, Policy
from casaba.wire import _policy_layout as layout

POLICY_BYTES = layout.POLICY_SIZE

_COPY_OFFSETS = tuple(
    layout.POLICY_FILE_COPIES + number * layout.POLICY_COPY_BYTES for number in (0, 1)
)


def build_policy(policy: Policy) -> bytes:
    """A new policy file of POLICY_SIZE bytes; raises InvalidInput for too many cards."""
    content = bytearray(layout.POLICY_SIZE)
    _put(content, 0, layout.POLICY_FILE_MAGIC, layout.POLICY_MAGIC)
    _put(content, 0, layout.POLICY_FILE_VERSION, layout.POLICY_VERSION)
    _put(content, 0, layout.POLICY_FILE_SIZE, layout.POLICY_SIZE)
    for offset in _COPY_OFFSETS:
        content[offset : offset + layout.POLICY_COPY_BYTES] = _copy(policy)
    return bytes(content)


def change_policy(content: bytes, policy: Policy) -> tuple[tuple[int, bytes], ...]:
    """The writes, in order, that change a file in place: (offset, bytes) pairs.

    A reader sees the old limits until the last write, and never a mixture.
    Raises InvalidInput when `content` is not a policy file of this version.
    """
    index = _checked_index(content)
    other = _COPY_OFFSETS[(index + 1) & 1]
    offset, code = layout.POLICY_FILE_INDEX
    return (other, _copy(policy)), (offset, struct.pack(code, index + 1))


def parse_policy(content: bytes) -> Policy:
    """The valid copy of a policy file; raises InvalidInput saying what is wrong with it."""
    offset = _COPY_OFFSETS[_checked_index(content) & 1]
    copy = content[offset : offset + layout.POLICY_COPY_BYTES]
    if _get(copy, 0, layout.POLICY_COPY_CHECKSUM) != zlib.crc32(copy[4:]):
        raise InvalidInput("policy file: the valid copy has a wrong checksum; prepare it again")
    count = _get(copy, 0, layout.POLICY_COPY_CARD_COUNT)
    if count > layout.POLICY_MAX_CARDS:
        raise InvalidInput(f"policy file: {count} cards, at most {layout.POLICY_MAX_CARDS}")
    flags = _get(copy, 0, layout.POLICY_COPY_FLAGS)
    return Policy(
        cards=tuple(_parse_card(copy, _card_offset(number)) for number in range(count)),
        announce=bool(flags & layout.POLICY_FLAG_ANNOUNCE),
        generation=_get(copy, 0, layout.POLICY_COPY_GENERATION),
    )


def _checked_index(content: bytes) -> int:
    if len(content) != layout.POLICY_SIZE:
        raise InvalidInput(f"policy file: {len(content)} bytes, expected {layout.POLICY_SIZE}")
    if (magic := _get(content, 0, layout.POLICY_FILE_MAGIC)) != layout.POLICY_MAGIC:
        raise InvalidInput(f"policy file: magic {magic:#x}, expected {layout.POLICY_MAGIC:#x}")
    if (version := _get(content, 0, layout.POLICY_FILE_VERSION)) != layout.POLICY_VERSION:
        raise InvalidInput(
            f"policy file: version {version}, this release reads {layout.POLICY_VERSION}; "
            "delete the pod so that its claim is prepared again"
        )
    return _get(content, 0, layout.POLICY_FILE_INDEX)


def _copy(policy: Policy) -> bytes:
    if len(policy.cards) > layout.POLICY_MAX_CARDS:
        raise InvalidInput(
            f"{len(policy.cards)} cards in one request, at most {layout.POLICY_MAX_CARDS}: "
            "use several requests"
        )
    copy = bytearray(layout.POLICY_COPY_BYTES)
    _put(copy, 0, layout.POLICY_COPY_CARD_COUNT, len(policy.cards))
    _put(copy, 0, layout.POLICY_COPY_FLAGS, layout.POLICY_FLAG_ANNOUNCE * policy.announce)
    _put(copy, 0, layout.POLICY_COPY_GENERATION, policy.generation)
    for number, card in enumerate(policy.cards):
        _put_card(copy, _card_offset(number), card)
    _put(copy, 0, layout.POLICY_COPY_CHECKSUM, zlib.crc32(copy[4:]))
    return bytes(copy)


def _card_offset(number: int) -> int:
    return layout.POLICY_COPY_CARDS + number * layout.POLICY_CARD_BYTES


def _put_card(copy: bytearray, at: int, card: CardLimits) -> None:
    _put(copy, at, layout.POLICY_CARD_UUID, gpu_uuid_bytes(card.gpu))
    _put(copy, at, layout.POLICY_CARD_MEMORY_LIMIT, card.memory_bytes)
    _put(copy, at, layout.POLICY_CARD_CONTEXT_ALLOWANCE, card.context_allowance_bytes)
    _put(copy, at, layout.POLICY_CARD_CONTEXT_SIZE, card.context_size_bytes)
    _put(copy, at, layout.POLICY_CARD_CORES, card.cores_percent)
    _put(copy, at, layout.POLICY_CARD_WEIGHT, card.weight)


def _parse_card(copy: bytes, at: int) -> CardLimits:
    offset, code = layout.POLICY_CARD_UUID
    (raw,) = struct.unpack_from(code, copy, at + offset)
    return CardLimits(
        gpu=gpu_uuid_text(raw),
        memory_bytes=_get(copy, at, layout.POLICY_CARD_MEMORY_LIMIT),
        context_allowance_bytes=_get(copy, at, layout.POLICY_CARD_CONTEXT_ALLOWANCE),
        context_size_bytes=_get(copy, at, layout.POLICY_CARD_CONTEXT_SIZE),
        cores_percent=_get(copy, at, layout.POLICY_CARD_CORES),
        weight=_get(copy, at, layout.POLICY_CARD_WEIGHT),
    )


def _put(content: bytearray, at: int, place: tuple[int, str], value: int | bytes) -> None:
    offset, code = place
    struct.pack_into(code, content, at + offset, value)


def _get(content: bytes, at: int, place: tuple[int, str]) -> int:
    offset, code = place
    return int(struct.unpack_from(code, content, at + offset)[0])
