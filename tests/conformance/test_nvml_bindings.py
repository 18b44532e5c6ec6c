"""NVIDIA's binding of NVML runs on the virtual card as it is on PyPI."""

import json
import sys

from tests.native.simulated_driver import host


def test_it_sees_the_card(a10: host.Host) -> None:
    ended = a10.run(sys.executable, "-m", "tests.conformance.nvml_calls")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == {
        "driver": "580.126.09",
        "cuda": 13000,
        "count": 1,
        "name": "NVIDIA A10",
        "uuid": host.A10_UUID,
        "memory_mib": [host.A10_MIB, 0, host.A10_MIB],
        "busy": 0,
        "processes": 0,
        "capability": [8, 6],
        "samples": "none",
        "fan": "none",
    }
