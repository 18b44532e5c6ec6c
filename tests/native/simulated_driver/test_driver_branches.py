"""Older drivers have fewer names, whichever way a program asks."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.simulated_driver import cuda, host

LATER = {
    "440": ("cuGetProcAddress", "cuMemAllocAsync", "cuGraphAddMemAllocNode", "cuLaunchKernelEx"),
    "470": ("cuGetProcAddress_v2", "cuLaunchKernelEx", "cuGraphAddNode", "cuCtxCreate_v4"),
    "535": ("cuGraphAddNode_v2", "cuCtxCreate_v4", "cuMemGetDefaultMemPool"),
    "580": (),
}
EARLIER = {
    "440": ("cuMemCreate", "cuStreamBeginCapture_v2", "cuLaunchKernel"),
    "470": ("cuGetProcAddress", "cuMemAllocAsync", "cuGraphAddMemAllocNode"),
    "535": ("cuGetProcAddress_v2", "cuLaunchKernelEx", "cuGraphAddNode"),
    "580": ("cuGraphAddNode_v2", "cuCtxCreate_v4", "cuMemGetDefaultMemPool"),
}


def folder(branch: str) -> Path:
    return host.built(host.BUILT / f"driver_{branch}" / "libcuda.so.1").parent


def missing(library: Path, names: tuple[str, ...]) -> set[str]:
    """Names that a program does not find. In a process of its own: one process can load only one
    library of that name."""
    program = f"""
import ctypes
library = ctypes.CDLL({str(library)!r})
print(*[name for name in {names!r} if not hasattr(library, name)])
"""
    ended = subprocess.run((sys.executable, "-c", program), capture_output=True, check=True)
    return set(ended.stdout.decode().split())


@pytest.mark.parametrize("branch", LATER)
def test_a_branch_has_its_names(branch: str) -> None:
    library = folder(branch) / "libcuda.so.1"
    assert missing(library, LATER[branch] + EARLIER[branch]) == set(LATER[branch])


def test_nvml_has_its_names() -> None:
    later = {"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMigMode"}
    library = folder("440") / "libnvidia-ml.so.1"
    assert missing(library, ("nvmlDeviceGetMemoryInfo", *later)) == later


def test_a_program_runs_on_an_old_driver(a10: host.Host) -> None:
    a10.configure("driver_version = 440.118.02\ncuda_version = 10020\n" + host.A10)
    with a10.work(LD_LIBRARY_PATH=str(folder("440"))) as process:
        process.start()
        assert process.call("begin") == cuda.SUCCESS
        assert process.call("version") == [cuda.SUCCESS, 10020]
        assert process.call("intervals_ms", 1_000_000, 3) == pytest.approx([1.0] * 2, abs=1e-3)
    table = a10.run("nvidia-smi")
    assert "440.118.02" in table.stdout


def test_the_newest_driver_tells_versions_apart(a10: host.Host) -> None:
    """cuGetProcAddress of the newest library answers as the driver of the settings would."""
    a10.configure("driver_version = 470.256.02\ncuda_version = 11040\n" + host.A10)
    with a10.cuda() as process:
        assert process.call("init") == cuda.SUCCESS
        assert process.call("proc_address", "cuMemAllocAsync", 12000)[0] == cuda.SUCCESS
        assert process.call("proc_address", "cuLaunchKernelEx", 12000)[0] == cuda.NOT_FOUND


def test_a_wrong_fault_is_told(a10: host.Host) -> None:
    shown = a10.run("nvidia-smi", CASABA_SIMULATED_FAULTS="alloc_fails=3")
    assert shown.returncode != 0
    assert "environment:0: 'alloc_fails' is not a key" in shown.stderr
