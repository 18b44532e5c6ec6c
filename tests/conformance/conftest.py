from pathlib import Path

import pytest

from tests.native.simulated_driver import host


@pytest.fixture
def a10(tmp_path: Path) -> host.Host:
    """A host with the scenario's card."""
    for library in ("libcuda.so.1", "libnvidia-ml.so.1"):
        host.built(host.DRIVER / library)
    made = host.Host(tmp_path)
    made.configure(host.DRIVER_LINES + host.A10)
    return made
