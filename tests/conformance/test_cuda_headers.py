"""The names of the virtual driver are those of NVIDIA's headers (which PyPI ships)."""

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from tests.native.simulated_driver import host

HEADERS = {"cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"}
LISTS = host.ROOT / "native/simulated_driver"
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DECLARED = re.compile(r"CUDAAPI\s+(cu[A-Z]\w*)\s*\(")
RENAMED = re.compile(
    r"#\s*define\s+cu[A-Z]\w*\s+(?:__CUDA_API_(?P<twin>PTDS|PTSZ)\()?\s*(?P<symbol>cu[A-Z]\w*)"
)
TYPED = re.compile(r"\*PFN_(cu[A-Z]\w*?)_v(\d+)(_ptsz|_ptds)?\)")
ENTRY = re.compile(r"^(EXPORT|TWIN)\((\w+),\s+(\d+),\s+(\w+)\)", re.MULTILINE)


def headers(project: str) -> Iterator[tuple[str, str]]:
    """Name and text, without comments, of each header of a package."""
    for file in metadata.files(project) or ():
        if file.suffix == ".h":
            yield file.name, COMMENT.sub("", Path(str(file.locate())).read_text())


def symbols() -> set[str]:
    """What the newest headers declare, and what they rename it to."""
    found: set[str] = set()
    for name, text in headers("nvidia-cuda-runtime"):
        if name not in HEADERS:
            continue
        found.update(DECLARED.findall(text))
        for match in RENAMED.finditer(text):
            found.add(match["symbol"])
            if match["twin"]:
                found.add(f"{match['symbol']}_{match['twin'].lower()}")
    return found


def test_every_name_is_there(a10: host.Host) -> None:
    """If only to answer CUDA_ERROR_NOT_SUPPORTED."""
    wanted = symbols()
    assert len(wanted) > 700
    program = (
        "import ctypes, sys; driver = ctypes.CDLL('libcuda.so.1');"
        "print(*[name for name in sys.stdin.read().split() if not hasattr(driver, name)])"
    )
    ended = subprocess.run(
        (sys.executable, "-c", program), env=a10.environment(), input=" ".join(wanted),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ended.stdout.split() == []


def test_every_version_is_the_headers() -> None:
    typed = {
        (base, int(version), twin)
        for project in ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12")
        for name, text in headers(project)
        if name.endswith("Typedefs.h")
        for base, version, twin in TYPED.findall(text)
    }
    lists = "".join((LISTS / f"cuda_{kind}.def").read_text() for kind in ("exports", "unsupported"))
    ours = {
        (base, int(version), symbol[-len("_ptsz") :] if kind == "TWIN" else "")
        for kind, base, version, symbol in ENTRY.findall(lists)
    }
    assert ours - typed == {("cuGetProcAddress", 12000, "_ptsz")}, "only that one is not in them"
