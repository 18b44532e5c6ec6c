"""The policy file: a reader sees whole old or whole new limits, whatever the writer does."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.errors import InvalidInput
from casaba.model.limits import CardLimits, Policy
from casaba.wire import _policy_layout as layout
from casaba.wire.policy_file import build_policy, change_policy, parse_policy
from tests.unit.values import A10, policies


@given(policies())
def test_round_trip(policy: Policy) -> None:
    assert parse_policy(build_policy(policy)) == policy


@given(policies(), st.lists(policies(), max_size=4), st.data())
def test_a_killed_writer_leaves_whole_limits(
    first: Policy, changes: list[Policy], data: st.DataObject
) -> None:
    content, current = bytearray(build_policy(first)), first
    for change in changes:
        writes = change_policy(bytes(content), change)
        done = data.draw(
            st.integers(0, sum(len(part) for _, part in writes)), label="bytes written"
        )
        complete = done == sum(len(part) for _, part in writes)
        for offset, part in writes:
            content[offset : offset + min(done, len(part))] = part[:done]
            done -= min(done, len(part))
        # The index is one aligned word: written whole or not at all.
        offset, word = writes[-1]
        if not complete:
            (index,) = struct.unpack(layout.POLICY_FILE_INDEX[1], word)
            content[offset : offset + len(word)] = struct.pack("<Q", index - 1)
        current = change if complete else current
        assert parse_policy(bytes(content)) == current


@pytest.mark.parametrize(
    ("offset", "text"), [(0, "magic"), (4, "version 255"), (layout.POLICY_FILE_COPIES, "checksum")]
)
def test_damage_is_named(offset: int, text: str) -> None:
    content = bytearray(build_policy(Policy(cards=(), announce=True)))
    content[offset] = 255
    with pytest.raises(InvalidInput, match=text):
        parse_policy(bytes(content))


def test_a_short_file_is_named() -> None:
    with pytest.raises(InvalidInput, match="7 bytes, expected 4096"):
        parse_policy(b"1234567")


def test_too_many_cards() -> None:
    card = CardLimits(gpu=A10.uuid, memory_bytes=1, context_allowance_bytes=0, context_size_bytes=0)
    with pytest.raises(InvalidInput, match="17 cards in one request, at most 16"):
        build_policy(Policy(cards=(card,) * 17, announce=True))
