"""Every function that the drivers' headers name is classed, and the hooks are what they should be.

The headers are NVIDIA's and come from PyPI, for development only.
"""

import re
import struct
from importlib import metadata
from pathlib import Path

import pytest

from casaba.wire import _region_layout as layout
from tests.native.guard.machine import CARDS, MIB, Budget, Machine
from tools import driver_names

TYPED = re.compile(r"\bPFN_(cu[A-Z]\w*?)_v(\d+)(_pt[ds][sz])?\b")


@pytest.fixture(scope="session")
def headers() -> list[driver_names.Header]:
    """Those that the pinned packages ship."""
    try:
        return list(driver_names.installed_headers())
    except metadata.PackageNotFoundError as absent:
        pytest.skip(f"{absent} is not installed: its headers are what is tested (make setup)")


def test_the_headers_are_there_and_name_what_they_should(
    headers: list[driver_names.Header],
) -> None:
    found = {(header.package, header.path.name): len(header.names) for header in headers}
    assert len(found) == sum(map(len, driver_names.HEADERS.values()))
    assert found["nvidia-cuda-runtime", "cuda.h"] > 650
    assert found["nvidia-cuda-runtime-cu12", "cuda.h"] > 600
    assert found["nvidia-nvml-dev", "nvml.h"] > 400
    assert min(found.values()) >= 3


def test_all_names_are_classed(headers: list[driver_names.Header]) -> None:
    classed = driver_names.classes()
    assert [f for header in headers for f in driver_names.faults_of_header(header, classed)] == []


def test_a_new_name_is_told(headers: list[driver_names.Header]) -> None:
    text = "CUresult CUDAAPI cuMemAllocNewest(CUdeviceptr *p);\n"
    header = driver_names.Header("p", Path("cuda.h"), driver_names.names_of(text))
    faults = list(driver_names.faults_of_header(header, driver_names.classes()))
    assert faults == ["p cuda.h: cuMemAllocNewest is not classed"]


def test_classes_and_hooks_agree() -> None:
    classed, hooked = driver_names.classes(), driver_names.hooks()
    assert list(driver_names.faults_of_classes(classed, hooked)) == []
    wrong = {"cuMemAlloc_v2": "PASS", "cuBlue": "BLUE", "cuMemFree_v2": "MEMORY"}
    assert (
        len(list(driver_names.faults_of_classes(wrong, {"cuMemAlloc_v2": (), "cuInit": ()}))) == 5
    )


def test_hooks_begin_with_the_version_that_the_headers_say(
    headers: list[driver_names.Header],
) -> None:
    """A hook under the wrong version would get another function's arguments."""
    folders = {header.path.parent for header in headers}
    text = "".join(path.read_text() for f in folders for path in f.glob("cuda*Typedefs.h"))
    typed = {(base, int(since), twin.lower()) for base, since, twin in TYPED.findall(text)}
    for name, (base, since) in driver_names.hooks().items():
        twin = re.search(r"_pt[ds][sz]$", name)
        wanted = (base, since, twin[0] if twin else "")
        assert not base or base == "cuGetProcAddress" or wanted in typed, name


def unknown_names(budget: Budget) -> int:
    """What the first slot says."""
    offset, code = layout.REGION_SLOT_UNKNOWN_NAMES
    content = budget.region_file.read_bytes()
    return int(struct.unpack_from(code, content, layout.REGION_FILE_SLOTS + offset)[0])


def test_unknown_names_pass_and_are_counted(machine: Machine) -> None:
    budget = machine.budget({CARDS[0]: MIB})
    with machine.tenant() as tenant:
        assert tenant.address("cuFromTheFuture") is None
        assert tenant.address("cuFromTheFuture_v2", version=99000) is None
        tenant.start()
        assert unknown_names(budget) == 2
        assert tenant.address("cuMemAlloc", version=12000) is not None
        tenant.address("cuGLInit")
        tenant.search("cublasCreate_v2")
        assert unknown_names(budget) == 2
        tenant.search("cuFromTheFuture")
        assert unknown_names(budget) == 3
