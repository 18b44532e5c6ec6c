"""The region as the agent reads it."""

import struct

import pytest

from casaba.errors import InvalidInput
from casaba.model.limits import CardUsage
from casaba.wire import _region_layout as layout
from casaba.wire.region_file import build_region, is_region, parse_usage


def test_a_fresh_region_charges_nothing() -> None:
    empty = CardUsage(asked_bytes=0, overhead_bytes=0)
    assert parse_usage(build_region(), 2) == (empty, empty)


def test_slots_of_a_card_add_up() -> None:
    content = bytearray(build_region())
    card = layout.REGION_FILE_CARDS + layout.REGION_CARD_BYTES
    struct.pack_into("<2Q", content, card, 5, 7)
    struct.pack_into("<Q", content, card + layout.REGION_CARD_OVERHEAD[0], 3)
    assert parse_usage(bytes(content), 2)[1] == CardUsage(asked_bytes=12, overhead_bytes=3)


@pytest.mark.parametrize("content", [b"", build_region()[:-1], build_region() + b"x"])
def test_a_damaged_region_is_told(content: bytes) -> None:
    assert not is_region(content)
    with pytest.raises(InvalidInput, match="a tenant damaged it"):
        parse_usage(content, 1)
