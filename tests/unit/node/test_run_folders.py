"""A local slice's folder lives as long as any process of its run."""

import subprocess
import sys
from pathlib import Path

import pytest

from casaba.errors import HostError
from casaba.node.run_folders import own_folder, sweep_runs

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
