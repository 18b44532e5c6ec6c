"""Schedules of cards: made, kept, mended in place."""

import os
from pathlib import Path

import pytest

from casaba.node.schedules import ensure_schedule
from casaba.wire.schedule_file import build_schedule, is_schedule
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
