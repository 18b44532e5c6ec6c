"""The region as the agent reads it."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.errors import InvalidInput
from casaba.model.limits import CardUsage
from casaba.wire import _region_layout as layout
from casaba.wire.region_file import (
    REGION_BYTES,
    build_region,
    is_region,
    parse_processes,
    parse_refusals,
)


def test_a_fresh_region_has_no_process_and_no_refusal() -> None:
    assert parse_processes(build_region(), 2) == {}
    assert parse_refusals(build_region()) == 0


def test_a_slot_tells_of_its_process() -> None:
    content = bytearray(build_region())
    struct.pack_into("<I", content, layout.REGION_FILE_HIGH_WATER[0], 3)
    slot = layout.REGION_FILE_SLOTS + 2 * layout.REGION_SLOT_BYTES
    struct.pack_into("<Q", content, slot, 4711)
    struct.pack_into("<Q", content, slot + layout.REGION_SLOT_PEAK[0], 99)
    card = layout.REGION_FILE_CARDS + layout.REGION_CARD_BYTES
    struct.pack_into("<Q", content, card + layout.REGION_CARD_ASKED[0] + 2 * 8, 7)
    struct.pack_into("<Q", content, card + layout.REGION_CARD_OVERHEAD[0] + 2 * 8, 3)
    processes = parse_processes(bytes(content), 2)
    assert list(processes) == [2]
    assert (processes[2].pid, processes[2].peak_bytes) == (4711, 99)
    assert processes[2].cards[1] == CardUsage(asked_bytes=7, overhead_bytes=3)


@pytest.mark.parametrize("content", [b"", build_region()[:-1], build_region() + b"x"])
def test_a_damaged_region_is_told(content: bytes) -> None:
    assert not is_region(content)
    with pytest.raises(InvalidInput, match="a tenant damaged it"):
        parse_processes(content, 1)


@given(st.data())
def test_whatever_a_tenant_writes_is_read_without_harm(data: st.DataObject) -> None:
    content = bytearray(build_region())
    at = data.draw(st.integers(12, REGION_BYTES - 64))
    content[at : at + 64] = data.draw(st.binary(min_size=64, max_size=64))
    for process in parse_processes(bytes(content), 16).values():
        assert process.pid > 0
