"""The arithmetic of shares, without a card."""

import subprocess
from pathlib import Path

import pytest

from tests.native.compute.shared_card import ROOT

NATIVE = ROOT / "native"
HERE = Path(__file__).with_name("programs")


def compiled(folder: Path, name: str) -> Path:
    """A program of this folder with the guard's arithmetic."""
    program = folder / name
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined"]
    command += [f"-I{NATIVE / 'include'}", f"-I{NATIVE / 'guard'}", "-o", str(program)]
    command += [str(HERE / f"{name}.c"), str(NATIVE / "guard" / "pacing.c")]
    subprocess.run(command, check=True)
    return program


def numbers(program: Path, *arguments: int) -> list[float]:
    done = subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return [float(line) for line in done.stdout.split()]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tenants on a card that is only numbers."""
    return compiled(tmp_path_factory.mktemp("model"), "pacing_model")


@pytest.fixture(scope="module")
def estimates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is learnt from measurements."""
    return compiled(tmp_path_factory.mktemp("estimates"), "estimates")


# cores, weight and kernel in us of two tenants; what they should get
CASES = [
    ((50, 0, 1000, 50, 0, 1000), (50, 50)),
    ((50, 0, 5000, 25, 0, 20000), (50, 25)),
    ((10, 0, 200, 90, 0, 10000), (10, 90)),
    ((0, 30, 5000, 0, 70, 60000), (30, 70)),
    ((0, 10, 200, 0, 90, 2000), (10, 90)),
    ((25, 0, 200, 0, 0, 200), (20, 80)),
]


@pytest.mark.parametrize(("tenants", "wanted"), CASES)
def test_two_tenants(model: Path, tenants: tuple[int, ...], wanted: tuple[int, int]) -> None:
    """A cap and no cap go by weight (25 to 100) where both want all."""
    for share, target in zip(numbers(model, *tenants), wanted, strict=True):
        assert abs(share - target) <= 1.0


def test_an_estimate_follows_and_ignores_one_disturbed_measurement(estimates: Path) -> None:
    steady = [5000] * 6
    assert numbers(estimates, *steady, 4_000_000, *steady)[-7:] == [5000.0] * 7
    assert numbers(estimates, *steady, *[20000] * 16)[-1] == pytest.approx(20000, rel=0.05)
