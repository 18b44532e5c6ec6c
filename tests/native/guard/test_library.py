"""What the built library asks of the images that it is put into."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from casaba.wire import _policy_layout, _region_layout
from tests.native.guard.conftest import PACKAGE, ROOT, make

ARCHITECTURES = ("x86_64", "aarch64")
OLDEST_GLIBC = (2, 17)
Compile = Callable[..., Path]


def read_elf(library: Path, *options: str) -> str:
    """The output of readelf."""
    command = ["readelf", "--wide", *options, str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="session", params=ARCHITECTURES)
def library(request: pytest.FixtureRequest) -> Path:
    """The guard for an architecture."""
    path = PACKAGE / str(request.param) / "libcasaba_guard.so"
    make(path)
    return path


def test_it_needs_the_c_library_and_nothing_else(library: Path) -> None:
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", read_elf(library, "--dynamic")) == ["libc.so.6"]


def test_it_runs_on_the_oldest_glibc(library: Path) -> None:
    versions = set(re.findall(r"Name: (\S+)", read_elf(library, "--version-info")))
    numbers = {tuple(map(int, v.removeprefix("GLIBC_").split("."))) for v in versions}
    assert numbers
    assert max(numbers) <= OLDEST_GLIBC
    assert "GLIBC_PRIVATE" not in versions


def test_it_exports_the_hooks_and_nothing_else(library: Path) -> None:
    hooks = re.findall(
        r"^HOOK\(\w+, *(\w+),", (ROOT / "native/include/hooks.def").read_text(), re.MULTILINE
    )
    symbols = re.findall(
        r"(GLOBAL|WEAK) +\w+ +\d+ (\S+)$", read_elf(library, "--dyn-syms"), re.MULTILINE
    )
    assert {name for _, name in symbols} == {*hooks, "dlsym", "dlvsym"}


def test_it_has_no_constructor_no_thread_storage_and_no_writable_code(library: Path) -> None:
    dynamic, segments = read_elf(library, "--dynamic"), read_elf(library, "--segments")
    assert not re.search(r"\((INIT|FINI|INIT_ARRAY|FINI_ARRAY|PREINIT_ARRAY|TEXTREL)\)", dynamic)
    assert re.search(r"Flags: NOW NODELETE", dynamic)
    assert "SYMBOLIC" in dynamic
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK .* RW ", segments)
    assert not re.search(r"^ +TLS ", segments, re.MULTILINE)
    assert " RWE " not in segments


def test_it_is_built_the_same_elsewhere(guard: Path, tmp_path: Path) -> None:
    """Without the compiler's cache and into other folders."""
    package = tmp_path / "package"
    library = package / guard.parent.name / guard.name
    command = ["make", "-s", "-C", str(ROOT / "native"), f"PYTHON={sys.executable}"]
    command += [str(library), f"PACKAGE={package}", f"OUT={tmp_path / 'out'}"]
    caches = {
        "ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "g"),
        "ZIG_LOCAL_CACHE_DIR": str(tmp_path / "l"),
    }
    subprocess.run(command, env=os.environ | caches, check=True)
    assert library.read_bytes() == guard.read_bytes()


def layouts_of_python() -> dict[str, int]:
    """Offsets and sizes as the Python side has them."""
    found: dict[str, int] = {}
    for module, records in (
        (_policy_layout, ("policy_file", "policy_copy", "policy_card")),
        (_region_layout, ("region_file", "region_slot", "region_card")),
    ):
        for name, value in vars(module).items():
            record = next((r for r in records if name.startswith(r.upper() + "_")), None)
            if record and name.isupper():
                field = name.removeprefix(record.upper() + "_").lower()
                offset = value if isinstance(value, int) else value[0]
                found["sizeof " + record if field == "bytes" else f"{record}.{field}"] = offset
    return found


def test_c_and_python_lay_the_files_out_alike(compile_c: Compile) -> None:
    program = compile_c("layouts.c")
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    lines = (line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert {name: int(value) for name, value in lines} == layouts_of_python()
