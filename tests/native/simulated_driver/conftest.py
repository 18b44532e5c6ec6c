import ctypes
from pathlib import Path

import pytest

from tests.native.simulated_driver import host


@pytest.fixture(scope="session")
def _nvml_library() -> None:
    """Loaded by path once, so that pynvml's look-up by name finds it in this process."""
    for library in ("libcuda.so.1", "libnvidia-ml.so.1", "nvidia-smi"):
        host.built(host.DRIVER / library)
    ctypes.CDLL(str(host.DRIVER / "libnvidia-ml.so.1"))


@pytest.fixture
def a10(_nvml_library: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> host.Host:
    """A host with the scenario's card."""
    monkeypatch.setenv("CASABA_SIMULATED_DIR", str(tmp_path))
    made = host.Host(tmp_path)
    made.configure(host.DRIVER_LINES + host.A10)
    return made
