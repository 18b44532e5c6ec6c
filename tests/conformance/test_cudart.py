"""The real CUDA runtime finds every name it looks for in the virtual driver, and is then refused:
it also asks for tables that are documented nowhere."""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from tests.native.simulated_driver import host

RECORDER = Path(__file__).parent / "programs" / "recorder.c"


def libraries(project: str) -> Iterator[Path]:
    for file in metadata.files(project) or ():
        if file.name.startswith("libcudart.so."):
            yield Path(str(file.locate()))


@pytest.mark.parametrize("project", ["nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"])
def test_it_resolves_all_names_and_is_refused(a10: host.Host, tmp_path: Path, project: str) -> None:
    (library,) = libraries(project)
    shim = tmp_path / "recorder"
    shim.mkdir()
    compiled = ("cc", "-shared", "-fPIC", "-o", shim / "libcuda.so.1", RECORDER, "-ldl")
    subprocess.run(compiled, check=True)
    ended = a10.run(
        sys.executable, "-m", "tests.conformance.cudart_calls", library,
        LD_LIBRARY_PATH=str(shim), RECORDED=str(host.DRIVER / "libcuda.so.1"),
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == ["cudaErrorSymbolNotFound"] * 2
    lines = ended.stderr.splitlines()
    found = [line.split(" ")[1:] for line in lines if line.startswith("symbol ")]
    assert len(found) > 400
    assert [name for name, _, _, result in found if result != "0"] == [""]
    assert "table" in lines
