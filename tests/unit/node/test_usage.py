"""Budgets as they lie on the disk, whatever their tenants wrote into their regions."""

import fcntl
import os
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casaba.model.limits import CardLimits, Policy
from casaba.node.budgets import ensure_budget
from casaba.node.usage import read_budget, read_budgets
from casaba.wire import _region_layout as layout
from casaba.wire.region_file import REGION_BYTES, build_region, lock_offset, parse_region
from tests.unit.values import A10, CLAIM_UID, GIB

_FLOCK = "hh4xqqi4x"


@pytest.fixture
def budget(tmp_path: Path) -> Path:
    """A budget on one card that nobody uses."""
    limits = CardLimits(
        gpu=A10.uuid, memory_bytes=GIB, context_allowance_bytes=0, context_size_bytes=0
    )
    folder = tmp_path / CLAIM_UID / "gpu"
    ensure_budget(folder, Policy(cards=(limits,), announce=False))
    return folder


def used_region(slots: int) -> bytes:
    """As many processes as slots, each with its own numbers."""
    content = bytearray(build_region())
    struct.pack_into("<IQ", content, layout.REGION_FILE_HIGH_WATER[0], slots, 3)
    for slot in range(slots):
        at = layout.REGION_FILE_SLOTS + slot * layout.REGION_SLOT_BYTES
        struct.pack_into("<10Q", content, at, *range(slot + 1, slot + 11))
        asked = layout.REGION_FILE_CARDS + layout.REGION_CARD_ASKED[0] + 8 * slot
        struct.pack_into("<Q", content, asked, 100 + slot)
    compute = layout.REGION_FILE_CARDS + layout.REGION_CARD_COMPUTE[0]
    struct.pack_into("<2Q", content, compute + 8 * layout.COMPUTE_BUSY, 7, 8)
    return bytes(content)


@pytest.mark.parametrize("slots", [1, 15, 16, 17, 256])
def test_living_processes_are_read_whatever_their_slots(budget: Path, slots: int) -> None:
    content = used_region(slots)
    (budget / "region").write_bytes(content)
    handle = os.open(budget / "region", os.O_RDWR)
    try:
        for slot in {0, slots - 1}:
            lock = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, lock_offset(slot), 1, 0)
            fcntl.fcntl(handle, fcntl.F_OFD_SETLK, lock)
        read = read_budget(budget.parent.parent, CLAIM_UID, "gpu")
    finally:
        os.close(handle)
    whole = parse_region(content, 1)
    assert read is not None
    assert read.processes == tuple(whole.processes()[slot] for slot in sorted({0, slots - 1}))
    assert (read.refusals, read.times, read.damaged) == (3, whole.times, False)
    assert (read.times[0].busy_ns, read.times[0].wait_ns) == (7, 8)


@given(
    st.binary(max_size=300)
    | st.integers(0, REGION_BYTES - 1).map(lambda size: build_region()[:size])
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_region_has_its_limits_still(budget: Path, content: bytes) -> None:
    (budget / "region").write_bytes(content)
    read = read_budget(budget.parent.parent, CLAIM_UID, "gpu")
    assert read is not None
    assert (read.damaged, read.processes) == (True, ())
    assert read.policy.cards[0].memory_bytes == GIB
    assert list(read_budgets(budget.parent.parent)) == []


@given(st.integers(12, REGION_BYTES - 64), st.binary(min_size=64, max_size=64))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_tenant_writes_is_read_without_harm(budget: Path, at: int, noise: bytes) -> None:
    content = bytearray(build_region())
    content[at : at + 64] = noise
    (budget / "region").write_bytes(content)
    read = read_budget(budget.parent.parent, CLAIM_UID, "gpu")
    assert read is not None
    assert not read.damaged
    assert read.processes == ()  # nobody holds a slot's lock


def test_what_is_not_there_is_no_budget(budget: Path) -> None:
    assert read_budget(budget.parent.parent, CLAIM_UID, "other") is None
    (budget / "region").unlink()
    read = read_budget(budget.parent.parent, CLAIM_UID, "gpu")
    assert read is not None
    assert read.damaged
    (budget / "policy").unlink()
    assert read_budget(budget.parent.parent, CLAIM_UID, "gpu") is None
