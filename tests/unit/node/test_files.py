"""Files are whole or not there."""

import os
import stat
from pathlib import Path

import pytest

from casaba.errors import HostError
from casaba.node.files import make_folder, remove_file, remove_tree, write_whole


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_with_its_mode(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a" / "b" / "file"
    for content in (b"old", b"new"):
        write_whole(path, content, mode=0o444, durable=durable)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_folders_are_open_to_all_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        make_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o755


def test_a_failed_write_keeps_the_old_file_and_says_where(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.mkdir()
    with pytest.raises(HostError, match=f"can't write {path}: Is a directory"):
        write_whole(path, b"x", durable=False)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_parent_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(HostError, match=r"Not a directory|File exists"):
        write_whole(tmp_path / "file" / "below", b"x", durable=False)


def test_removing_what_is_not_there_is_fine(tmp_path: Path) -> None:
    remove_file(tmp_path / "none")
    remove_tree(tmp_path / "none")
