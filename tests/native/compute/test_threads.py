"""Many threads that launch at once, watched by gcc's sanitizers."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.compute.shared_card import ROOT, SharedCard


def sanitized(name: str) -> tuple[str, Path]:
    """The runtime, which must come first in the process, and the folder of what is built."""
    folder = ROOT / "build" / "native" / name
    targets = [
        folder / "libcasaba_guard.so",
        folder / "simulated_driver" / "libcuda.so.1",
        folder / "samples" / "busy",
    ]
    make = ["make", "-s", "-C", str(ROOT / "native"), f"PYTHON={sys.executable}"]
    subprocess.run([*make, *map(str, targets)], check=True)
    command = ["gcc", f"-print-file-name=lib{name}.so"]
    runtime = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return runtime, folder


@pytest.mark.parametrize("name", ["asan", "tsan"])
@pytest.mark.parametrize("mode", ["async", "graph", "capture"])
def test_threads_launch_at_once(card: SharedCard, name: str, mode: str) -> None:
    """Under a cap, with a neighbour, so that all of the slow path runs."""
    runtime, folder = sanitized(name)
    environment = card.environment(card.claim("a", 50)) | {
        "LD_PRELOAD": f"{runtime}:{folder / 'libcasaba_guard.so'}",
        "LD_LIBRARY_PATH": str(folder / "simulated_driver"),
    }
    command = [str(folder / "samples" / "busy"), "--seconds=1", "--threads=4", f"--mode={mode}"]
    with card.busy(card.claim("b", 25), "1ms"):
        done = subprocess.run(
            [*command, "--kernels=5us,200us"], env=environment, capture_output=True, text=True
        )
    assert (done.returncode, done.stderr) == (0, "")
