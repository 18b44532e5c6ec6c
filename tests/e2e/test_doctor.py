"""What is wrong with a real cluster, one fault after the other, and what the doctor says of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(400)

CASABA = str(Path(sys.executable).parent / "casaba")
GATE_OFF = ("--feature-gates=DRAConsumableCapacity=false",)
LABELLED, OTHERS = "edge-1", "edge-2"
VALUES = ("--set=drivers.nvidia.containerDriver=true",)
UNCHECKED = ("--set=preinstallCheck.enabled=false",)
