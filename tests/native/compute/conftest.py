"""The programs, built; a card for each test."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.compute.shared_card import BUSY, NATIVE, ROOT, SharedCard


@pytest.fixture(scope="session")
def built() -> None:
    """Build what is not current."""
    simulated = NATIVE / "simulated_driver"
    targets = [NATIVE / "libcasaba_guard.so", BUSY]
    targets += [simulated / name for name in ("libcuda.so.1", "libnvidia-ml.so.1", "nvidia-smi")]
    command = ["make", "-s", "-C", str(ROOT / "native"), f"PYTHON={sys.executable}"]
    subprocess.run([*command, *map(str, targets)], check=True)


@pytest.fixture
def card(tmp_path: Path, built: None) -> SharedCard:
    """A card that nobody uses yet."""
    return SharedCard(tmp_path)
