"""What is wrong with a real cluster, one fault after the other, and what the doctor says of it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import build
from tests.cluster.bed import Bed
from tests.cluster.mounts import DRIVER_ROOT
from tests.cluster.waiting import wait_until
from tests.e2e.test_helm import CHART, NAMESPACE, RELEASE, WAITING, placed, wait_for_event
from tests.e2e.workloads import SAMPLE, SLICE_TIMEOUT_S, applied, container, slices, wait_for_pod

pytestmark = pytest.mark.timeout(400)

CASABA = str(Path(sys.executable).parent / "casaba")
GATE_OFF = ("--feature-gates=DRAConsumableCapacity=false",)
LABELLED, OTHERS = "edge-1", "edge-2"
VALUES = ("--set=drivers.nvidia.containerDriver=true",)
UNCHECKED = ("--set=preinstallCheck.enabled=false",)
