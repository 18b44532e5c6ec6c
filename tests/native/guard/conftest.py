"""The guard and the simulated driver, built; a machine for each test."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.guard.machine import Machine

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "src" / "casaba" / "_native"
HERE = PACKAGE / platform.machine()


def make(*targets: Path) -> None:
    """Build what is not current."""
    command = ["make", "-s", "-C", ROOT / "native", f"PYTHON={sys.executable}", *targets]
    subprocess.run(command, check=True)


@pytest.fixture(scope="session")
def guard() -> Path:
    """The guard for this machine."""
    library = HERE / "libcasaba_guard.so"
    make(library)
    return library


@pytest.fixture(scope="session")
def driver() -> Path:
    """The folder of the simulated driver libraries."""
    folder = HERE / "simulated_driver"
    make(folder / "libcuda.so.1", folder / "libnvidia-ml.so.1")
    return folder


@pytest.fixture
def machine(tmp_path: Path, driver: Path, guard: Path) -> Machine:
    """A host with two virtual cards and no claims."""
    return Machine(tmp_path, driver, guard)
