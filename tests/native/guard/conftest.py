"""The guard and the simulated driver, built; a machine for each test."""

import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.native.guard.machine import Machine

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "src" / "casaba" / "_native"
HERE = PACKAGE / platform.machine()


def make(*targets: Path) -> None:
    """Build what is not current."""
    command = ["make", "-s", "-C", str(ROOT / "native"), f"PYTHON={sys.executable}"]
    command += map(str, targets)
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


@pytest.fixture(scope="session")
def samples() -> dict[str, Path]:
    """The sample program random_alloc, by its door to the driver."""
    folder = ROOT / "build" / "native" / "samples"
    doors = {"linked": "random_alloc", "dlsym": "random_alloc_dlsym"}
    doors["getproc"] = "random_alloc_getproc"
    programs = {door: folder / name for door, name in doors.items()}
    make(*programs.values())
    return programs


@pytest.fixture
def machine(tmp_path: Path, driver: Path, guard: Path) -> Machine:
    """A host with two virtual cards and no claims."""
    return Machine(tmp_path, driver, guard)


@pytest.fixture(scope="session")
def include() -> Path:
    """The folder of the native contracts."""
    return ROOT / "native" / "include"


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory, include: Path) -> Callable[..., Path]:
    """Compiles programs/NAME with gcc and further arguments."""
    folder = tmp_path_factory.mktemp("programs")

    def compile_one(name: str, *arguments: str | Path) -> Path:
        product = folder / f"{len(list(folder.iterdir()))}-{Path(name).stem}"
        source = Path(__file__).with_name("programs") / name
        command = ["gcc", "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{include}"]
        subprocess.run([*command, "-o", product, source, *arguments], check=True)
        return product

    return compile_one
