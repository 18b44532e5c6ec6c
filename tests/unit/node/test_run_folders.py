"""A local slice's folder lives as long as any process of its run."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from casaba.errors import HostError, InvalidInput
from casaba.node.run_folders import held_folder, own_folder, sweep_runs

HOLDER = """
import subprocess, sys
from pathlib import Path
from casaba.node.run_folders import new_run
new_run(Path(sys.argv[1]))
child = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=-3, stderr=-3)
print(child.pid, flush=True)
"""


def test_the_folder_stays_while_a_child_lives(tmp_path: Path) -> None:
    started = subprocess.run(
        [sys.executable, "-c", HOLDER, tmp_path], capture_output=True, text=True, check=True
    )
    sweep_runs(tmp_path)
    (run,) = tmp_path.iterdir()
    subprocess.run(["kill", "-9", started.stdout.strip()], check=True)
    subprocess.run(["tail", f"--pid={started.stdout.strip()}", "-f", "/dev/null"], check=True)
    sweep_runs(tmp_path)
    assert not run.exists()


def test_one_that_is_being_made_stays(tmp_path: Path) -> None:
    (tmp_path / "run-new").mkdir()
    sweep_runs(tmp_path)
    assert (tmp_path / "run-new").exists()


def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "casaba").mkdir(mode=0o755)
    with pytest.raises(HostError, match="only you may enter"):
        own_folder({"XDG_RUNTIME_DIR": str(tmp_path)})


def test_the_users_own_folder_is_private(tmp_path: Path) -> None:
    folder = own_folder({"XDG_RUNTIME_DIR": str(tmp_path)})
    assert folder == tmp_path / "casaba"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_relative_folder_counts_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert own_folder({"XDG_RUNTIME_DIR": "run"}).parent == tmp_path


def test_a_held_folder_is_gone_with_its_lock_and_refused_meanwhile(tmp_path: Path) -> None:
    with held_folder(tmp_path, "demo") as folder:
        assert folder.is_dir()
        with (
            pytest.raises(InvalidInput, match="one called 'demo' runs already"),
            held_folder(tmp_path, "demo"),
        ):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_whose_file_was_just_removed_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "demo.lock"
    really_open = os.open
    opened: list[Any] = []

    def open_(*arguments: Any, **options: Any) -> int:
        handle = really_open(*arguments, **options)
        if str(arguments[0]) == str(lock) and not opened:
            lock.unlink()  # its last holder is just gone
        opened.append(arguments[0])
        return handle

    monkeypatch.setattr(os, "open", open_)
    with held_folder(tmp_path, "demo"):
        monkeypatch.undo()
        assert lock.exists()
