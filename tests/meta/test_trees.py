"""Folders that are looked at while others work in them."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import pytest

from tests.cluster.trees import is_empty, tree


def test_everything_below_is_there(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").touch()
    (tmp_path / "a/link").symlink_to(tmp_path)
    below = {str(path.relative_to(tmp_path)) for path in tree(tmp_path)}
    assert below == {"a", "a/b", "a/b/file", "a/link"}


@pytest.mark.parametrize("steps", range(1, 5))
def test_folders_may_go_meanwhile(tmp_path: Path, steps: int) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "c").mkdir(parents=True)
    paths = tree(tmp_path)
    found = set(islice(paths, steps))
    for name in ("a", "b"):
        shutil.rmtree(tmp_path / name)
    found.update(paths)
    assert {tmp_path / "a", tmp_path / "b"} <= found


def test_a_folder_that_is_gone_is_empty(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert not is_empty(tmp_path)
    assert is_empty(tmp_path / "folder")
    assert is_empty(tmp_path / "gone")
