"""Checkpoint entries survive the disk, and damage is noticed."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.errors import InvalidInput
from casaba.model.claim import AllocatedClaim
from casaba.model.ids import BootId
from casaba.model.prepared import CheckpointEntry
from casaba.wire.checkpoint import build_entry, parse_entry
from tests.unit.values import claims


@given(claims(), st.text())
def test_round_trip(claim: AllocatedClaim, boot_id: str) -> None:
    entry = CheckpointEntry(claim=claim, boot_id=BootId(boot_id))
    assert parse_entry(build_entry(entry)) == entry


@given(claims(), st.data())
def test_any_lost_or_changed_byte_is_noticed(claim: AllocatedClaim, data: st.DataObject) -> None:
    content = build_entry(CheckpointEntry(claim=claim, boot_id=BootId("boot")))
    at = data.draw(st.integers(0, len(content) - 3))
    other = data.draw(st.integers(1, 255).map(lambda mask: bytes([content[at] ^ mask])))
    entry = parse_entry(content)
    for damaged in (content[:at], content[:at] + other + content[at + 1 :]):
        with contextlib.suppress(InvalidInput):
            assert parse_entry(damaged) == entry


def test_a_newer_version_is_named() -> None:
    with pytest.raises(InvalidInput, match="version 9"):
        parse_entry(b'{"version": 9, "checksum": 0, "entry": {}}')
