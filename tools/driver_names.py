"""Holds native/include/driver_names.def to the headers of CUDA and NVML.

The headers are NVIDIA's and stay in the packages of PyPI that ship them (requirements.txt pins
them); here only the names are compared. `--check` tells of every header whether all its names are
classed, and whether classes and hooks.def agree; without it, lines for new names are printed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

INCLUDE = Path(__file__).resolve().parent.parent / "native" / "include"
CLASSES = ("MEMORY", "LAUNCH", "QUERY", "LIFETIME", "PASS")
HEADERS = {
    "nvidia-cuda-runtime": (
        "cuda.h",
        "cudaGL.h",
        "cudaEGL.h",
        "cudaVDPAU.h",
        "cudaProfilerTypedefs.h",
    ),
    "nvidia-cuda-runtime-cu12": (
        "cuda.h",
        "cudaGL.h",
        "cudaEGL.h",
        "cudaVDPAU.h",
        "cudaProfilerTypedefs.h",
    ),
    "nvidia-nvml-dev": ("nvml.h",),
}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\\\n", re.DOTALL)
DECLARED = re.compile(r"\b(?:CUDAAPI|DECLDIR)\s+((?:cu|nvml)[A-Z]\w*)\s*\(")
RENAMED = re.compile(
    r"^\s*#\s*define\s+((?:cu|nvml)[A-Z]\w*)\s+"
    r"(?:__CUDA_API_(?P<twin>PTDS|PTSZ)\()?\s*(?P<symbol>(?:cu|nvml)[A-Z]\w*)",
    re.MULTILINE,
)
TYPED = re.compile(r"\bPFN_(cu[A-Z]\w*?)_v\d+(?:_pt[ds][sz])?\b")
CLASSED = re.compile(r"^NAME\((\w+), *(\w+)\)$", re.MULTILINE)
HOOKED = re.compile(r"^HOOK\(\w+, *(\w+), *(?:\"(\w+)\"|NULL), *(\d+)\)", re.MULTILINE)


@dataclass(frozen=True)
class Header:
    """One header that is installed, and the functions it names."""

    package: str
    path: Path
    names: frozenset[str]


def names_of(text: str) -> frozenset[str]:
    """All functions that a header declares, renames or types, with their stream twins."""
    code = COMMENT.sub(" ", text)
    found = {*DECLARED.findall(code), *TYPED.findall(code)}
    for match in RENAMED.finditer(code):
        found |= {match[1], match["symbol"]}
        if match["twin"]:
            found.add(f"{match['symbol']}_{match['twin'].lower()}")
    return frozenset(found)


def installed_headers() -> Iterator[Header]:
    """The headers; raises PackageNotFoundError when a package of HEADERS is not installed."""
    for package, wanted in HEADERS.items():
        for file in metadata.files(package) or ():
            if file.name in wanted:
                path = Path(str(file.locate()))
                yield Header(package, path, names_of(path.read_text(errors="replace")))


def classes() -> dict[str, str]:
    """Class by name, in the order of driver_names.def."""
    return dict(CLASSED.findall((INCLUDE / "driver_names.def").read_text()))


def hooks() -> dict[str, tuple[str, int]]:
    """Of every hook its name for cuGetProcAddress, or "", and the CUDA version since when."""
    found = HOOKED.findall((INCLUDE / "hooks.def").read_text())
    return {name: (base, int(since)) for name, base, since in found}


def faults_of_classes(classed: Mapping[str, str], hooked: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with the list itself, or between it and the hooks."""
    if list(classed) != sorted(classed):
        yield "the names are not in order, as the guard's search wants them"
    for name, kind in classed.items():
        if kind not in CLASSES:
            yield f"{name} is {kind}; the classes are {', '.join(CLASSES)}"
        elif (kind != "PASS") != (name in hooked):
            yield f"{name} is {kind} and {'hooked' if name in hooked else 'not hooked'}"
    for name in sorted(hooked.keys() - classed.keys()):
        yield f"{name} is hooked and not classed"


def faults_of_header(header: Header, classed: Mapping[str, str]) -> Iterator[str]:
    """Names of a header that are not classed."""
    for name in sorted(header.names - classed.keys()):
        yield f"{header.package} {header.path.name}: {name} is not classed"


def main(words: list[str]) -> int:
    """Check, or print the lines that are missing."""
    classed = classes()
    headers = list(installed_headers())
    if "--check" not in words:
        missing = frozenset().union(*(h.names for h in headers)) - classed.keys()
        print("\n".join(f"NAME({name}, PASS)" for name in sorted(missing)))
        return 0
    faults = list(faults_of_classes(classed, hooks()))
    faults += [fault for header in headers for fault in faults_of_header(header, classed)]
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
