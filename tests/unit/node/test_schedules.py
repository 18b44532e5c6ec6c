"""Schedules of cards: made, kept, mended in place."""

import fcntl
import os
import struct
from pathlib import Path

import pytest

from casaba.node.schedules import ensure_schedule, read_tenants
from casaba.wire import _schedule_layout as layout
from casaba.wire.schedule_file import build_schedule, is_schedule, tenant_id, tenant_lock
from tests.unit.values import A10


def test_a_whole_schedule_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "gpus" / A10.uuid
    assert ensure_schedule(path, A10.uuid)
    with path.open("r+b") as file:
        file.seek(200)
        file.write(b"a tenant's record")
    before = path.read_bytes()
    assert not ensure_schedule(path, A10.uuid)
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize("damage", [b"", b"short", b"\xff" * 8192, b"\0" * 9000])
def test_a_damaged_one_is_mended_in_the_file_that_containers_have(
    tmp_path: Path, damage: bytes
) -> None:
    path = tmp_path / A10.uuid
    ensure_schedule(path, A10.uuid)
    mounted = os.open(path, os.O_RDONLY)
    path.write_bytes(damage)
    assert ensure_schedule(path, A10.uuid)
    assert is_schedule(os.pread(mounted, 10_000, 0), A10.uuid)
    os.close(mounted)


def test_another_cards_schedule_is_not_this_ones() -> None:
    other = type(A10.uuid)("GPU-00000000-0000-0000-0000-000000000001")
    assert not is_schedule(build_schedule(other), A10.uuid)


def test_tenants_are_those_that_have_an_id_and_a_living_process(tmp_path: Path) -> None:
    path = tmp_path / A10.uuid
    ensure_schedule(path, A10.uuid)
    ids = {0: tenant_id("one", "gpu"), 5: tenant_id("two", "gpu"), 31: tenant_id("gone", "gpu")}
    with path.open("r+b") as file:
        for place, id_ in ids.items():
            file.seek(layout.SCHEDULE_FILE_TENANTS + place * layout.SCHEDULE_TENANT_BYTES)
            file.write(struct.pack("<Q", id_))
    handle = os.open(path, os.O_RDWR)
    try:
        for place in (0, 5, 7):
            lock = struct.pack("hh4xqqi4x", fcntl.F_RDLCK, os.SEEK_SET, tenant_lock(place), 1, 0)
            fcntl.fcntl(handle, fcntl.F_OFD_SETLK, lock)
        assert read_tenants(path, A10.uuid) == {ids[0], ids[5]}
    finally:
        os.close(handle)
    assert read_tenants(path, A10.uuid) == frozenset()


@pytest.mark.parametrize("damage", [b"", b"\xff" * 8192, None])
def test_where_there_is_no_whole_schedule_nobody_has_signed_in(
    tmp_path: Path, damage: bytes | None
) -> None:
    path = tmp_path / A10.uuid
    if damage is not None:
        path.write_bytes(damage)
    assert read_tenants(path, A10.uuid) == frozenset()
