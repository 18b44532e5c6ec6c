"""Every door leads to the hook where the driver has the function, and nowhere else."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from casaba.model.ids import GpuUuid
from tests.native.guard.machine import CARDS, MIB, Machine
from tests.native.guard.tenant import OUT_OF_MEMORY, SUCCESS, Tenant

GUARD, DRIVER, NVML = "libcasaba_guard.so", "libcuda.so.1", "libnvidia-ml.so.1"
NO_DEVICE, NOT_SUPPORTED = 100, 801
SYMBOL_VERSION = DRIVER
NVML_LIBRARY_NOT_FOUND = 12
VERSIONS = (2000, 3020, 4000, 7000, 10020, 11000, 11040, 12000, 12050, 13000)
PER_THREAD = 2

Compile = Callable[..., Path]


@dataclass(frozen=True)
class Entry:
    """A function of the virtual driver, as its cuGetProcAddress knows it."""

    base: str
    since: int
    symbol: str
    per_thread: bool


@pytest.fixture(scope="session")
def entries(include: Path) -> list[Entry]:
    """All that the virtual libcuda hands out."""
    text = (include.parent / "simulated_driver" / "cuda_exports.def").read_text()
    lines = re.findall(r"^(EXPORT|TWIN)\((\w+), *(\d+), *(\w+)\)$", text, re.M)
    assert len(lines) > 100
    return [Entry(base, int(since), symbol, kind == "TWIN") for kind, base, since, symbol in lines]


@pytest.fixture(scope="session")
def hooks(include: Path, entries: list[Entry]) -> set[str]:
    """Everything that the guard hooks and the virtual drivers have."""
    hooked = re.findall(r"^HOOK\(\w+, *(\w+),", (include / "hooks.def").read_text(), re.M)
    nvml = (include.parent / "simulated_driver" / "nvml_exports.def").read_text()
    exported = {entry.symbol for entry in entries} | set(
        re.findall(r"^EXPORT\((\w+)\)", nvml, re.M)
    )
    assert len(hooked) > 100
    return set(hooked) & exported


def newest(entries: list[Entry], version: int, flags: int) -> str | None:
    """The driver's choice among entries of one base; a twin only where one is asked for."""
    family = [e for e in entries if e.since <= version]
    twins = [e for e in family if e.per_thread] if flags == PER_THREAD else []
    choice = twins or [e for e in family if not e.per_thread]
    return max(choice, key=lambda e: e.since).symbol if choice else None


def test_dlsym_on_the_drivers_handle(machine: Machine, hooks: set[str]) -> None:
    with machine.tenant() as tenant:
        for hook in hooks:
            assert tenant.object_at(tenant.address(hook)) == GUARD, hook
        assert tenant.object_at(tenant.address("cuMemHostAlloc")) == DRIVER
        assert tenant.object_at(tenant.address("nvmlDeviceGetName")) == NVML
        assert tenant.address("cuNoSuchFunction") is None


@pytest.mark.parametrize("flags", [0, 1, 2])
def test_proc_address_gives_the_hook_of_that_version(
    machine: Machine, hooks: set[str], entries: list[Entry], flags: int
) -> None:
    with machine.tenant() as tenant:
        exported = {hook: tenant.address(hook) for hook in hooks if hook.startswith("cu")}
        for base in {entry.base for entry in entries if entry.symbol in hooks}:
            family = [entry for entry in entries if entry.base == base]
            for version in VERSIONS:
                wanted = newest(family, version, flags)
                if wanted is None or wanted in hooks:
                    found = tenant.address(base, version=version, flags=flags)
                    assert found == (exported[wanted] if wanted else None), (base, version)


@pytest.mark.parametrize("name", ["cuMemHostAlloc", "cuStreamQuery", "cuStreamCreate"])
def test_proc_address_of_other_functions(machine: Machine, name: str) -> None:
    with machine.tenant() as tenant:
        found = tenant.address(name, version=13000, flags=2)
        assert tenant.object_at(found) == DRIVER


@pytest.mark.parametrize("name", ["cuMemAlloc", "cuNoSuchFunction", ""])
@pytest.mark.parametrize("version", [0, 2000, 12000])
@pytest.mark.parametrize("flags", [0, 3, 8])
def test_proc_address_answers_as_the_driver_does(
    machine: Machine, name: str, version: int, flags: int
) -> None:
    symbol = name.encode() + b"\0"
    with machine.tenant() as tenant, machine.tenant(guarded=False) as bare:
        for function, more in (("cuGetProcAddress_v2", (bytes(4),)), ("cuGetProcAddress", ())):
            guarded = tenant.call(function, symbol, bytes(8), version, flags, *more)
            plain = bare.call(function, symbol, bytes(8), version, flags, *more)
            assert guarded.result == plain.result
            assert guarded.buffers[2:] == plain.buffers[2:]


def test_a_function_from_proc_address_is_limited(machine: Machine) -> None:
    machine.budget({CARDS[0]: MIB})
    with machine.tenant() as tenant:
        tenant.start()
        refused = tenant.call("cuMemAlloc", bytes(8), MIB + 1, version=12000, flags=2)
        assert refused.result == OUT_OF_MEMORY


def test_a_linked_program_is_limited(machine: Machine, compile_c: Compile, driver: Path) -> None:
    machine.budget({CARDS[0]: MIB})
    program = compile_c("linked.c", driver / "libcuda.so.1")
    done = subprocess.run(
        [program, str(MIB)], env=machine.environment(), capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (f"{OUT_OF_MEMORY} {SUCCESS}\n", "")


def test_the_default_handle_finds_the_hook(machine: Machine) -> None:
    with machine.tenant() as tenant:
        before = tenant.search("cuMemAlloc_v2")
        tenant.address("cuInit")
        assert before == 0, "the driver is not loaded yet"
        assert tenant.search("cuMemAlloc_v2") == tenant.address("cuMemAlloc_v2")
        assert tenant.search("nvmlInit_v2") == 0, "libnvidia-ml is not loaded"
        assert tenant.search("cuNoSuchFunction") == 0
        assert tenant.object_at(tenant.search("qsort")) == "libc.so.6"


class TestOldDriver:
    """A driver without most of the hooked names."""

    @pytest.fixture
    def environment(self, machine: Machine, compile_c: Compile, tmp_path: Path) -> dict[str, str]:
        """That of a process that finds the old driver."""
        library = compile_c(
            "old_driver.c", "-shared", "-fPIC", f"-Wl,-soname,{DRIVER}", "-Wl,--default-symver"
        )
        (tmp_path / "old").mkdir()
        (tmp_path / "old" / "libcuda.so.1").symlink_to(library)
        machine.budget({GpuUuid("GPU-00000000-0000-0000-0000-000000000001"): MIB})
        return machine.environment() | {"LD_LIBRARY_PATH": str(tmp_path / "old")}

    def test_what_it_lacks_stays_absent(self, environment: dict[str, str]) -> None:
        with Tenant(environment) as tenant:
            assert tenant.address("cuCtxCreate_v4") is None
            assert tenant.address("cuMemAlloc_v2") is not None
            assert tenant.search("cuCtxCreate_v4") == 0
            assert tenant.search("cuCtxCreate_v4", version=SYMBOL_VERSION) == 0
            assert tenant.object_at(tenant.search("cuMemAlloc_v2")) == GUARD

    def test_dlvsym(self, environment: dict[str, str]) -> None:
        with Tenant(environment) as tenant:
            found = tenant.search("cuMemAlloc_v2", version=SYMBOL_VERSION, in_driver=True)
            assert found == tenant.address("cuMemAlloc_v2")
            other = tenant.search("cuCtxGetCurrent", version=SYMBOL_VERSION, in_driver=True)
            assert tenant.object_at(other) not in (None, GUARD)
            assert tenant.search("cuMemAlloc_v2", version="NO_SUCH", in_driver=True) == 0

    def test_what_it_hands_out_beside_its_exports_is_hooked(
        self, environment: dict[str, str]
    ) -> None:
        with Tenant(environment) as tenant:
            found = tenant.address("cuMemAlloc", version=12000)
            assert found == tenant.address("cuMemAlloc_v2")
            tenant.call("cuInit", 0)
            assert tenant.alloc(MIB + 1) is None
            assert tenant.alloc(MIB) is not None

    def test_a_hook_called_all_the_same_says_so(
        self, environment: dict[str, str], guard: Path
    ) -> None:
        script = (
            "import ctypes; cuda = ctypes.CDLL('libcuda.so.1'); cuda.cuInit(0);"
            f"guard = ctypes.CDLL({str(guard)!r}); import sys;"
            f"sys.exit(guard.cuCtxCreate_v4(None, None, 0, 0) != {NOT_SUPPORTED})"
        )
        # Without the preload, look-ups on the guard's own handle reach its exports.
        del environment["LD_PRELOAD"]
        subprocess.run([sys.executable, "-c", script], env=environment, check=True)


def test_without_a_driver_hooks_answer_and_nothing_ends(guard: Path, tmp_path: Path) -> None:
    script = (
        f"import ctypes; guard = ctypes.CDLL({str(guard)!r});"
        "print(guard.cuInit(0), guard.cuMemAlloc_v2(None, 1), guard.cuMemFree_v2(1),"
        "guard.cuGetProcAddress_v2(b'cuInit', None, 0, 0, None), guard.nvmlInit_v2())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(NO_DEVICE)] * 4 + [str(NVML_LIBRARY_NOT_FOUND)]
    assert done.stderr == ""


class TestNext:
    """RTLD_NEXT is counted from the library that asks."""

    @pytest.fixture
    def tracer(self, compile_c: Compile) -> Path:
        """Another library to preload."""
        return compile_c("tracer.c", "-shared", "-fPIC", "-ldl")

    def ask(self, machine: Machine, preload: str, tracer: Path, driver: Path) -> dict[str, str]:
        """In which library the tracer finds each name behind itself."""
        script = f"""
import ctypes, os
ctypes.CDLL({str(driver / DRIVER)!r}, ctypes.RTLD_GLOBAL)
tracer = ctypes.CDLL({str(tracer)!r})
def where(address):
    for line in open("/proc/self/maps"):
        low, high = (int(part, 16) for part in line.split()[0].split("-"))
        if address and low <= address < high:
            return os.path.basename(line.split()[-1])
    return "nothing"
for function, more in (("tracer_next", ()), ("tracer_next_version", (b"GLIBC_2.2.5",))):
    find = getattr(tracer, function)
    find.restype = ctypes.c_void_p
    for name in ("getppid", "getpid", "cuMemAlloc_v2", "tracer_next", "cuNoSuchFunction"):
        print(function, name, where(find(name.encode(), *more)))
print("parent", "is", os.getppid())
"""
        environment = machine.environment() | {"LD_PRELOAD": preload}
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        lines = (line.rsplit(" ", 1) for line in done.stdout.splitlines())
        return dict(lines)

    @pytest.mark.parametrize("first", ["tracer", "guard"])
    def test_next_of_another_preloaded_library(
        self, machine: Machine, tracer: Path, driver: Path, first: str
    ) -> None:
        order = [tracer, machine.guard] if first == "tracer" else [machine.guard, tracer]
        found = self.ask(machine, ":".join(map(str, order)), tracer, driver)
        for function in ("tracer_next", "tracer_next_version"):
            assert found[f"{function} getppid"] == "libc.so.6"
            assert found[f"{function} getpid"] == "libc.so.6"
            assert found[f"{function} cuMemAlloc_v2"] == GUARD
            assert found[f"{function} tracer_next"] == "nothing"
            assert found[f"{function} cuNoSuchFunction"] == "nothing"
        assert int(found["parent is"]) > 0
