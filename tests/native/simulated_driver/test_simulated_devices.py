import re
import subprocess
from pathlib import Path

import pytest

from tests.native.simulated_driver import cuda, host

TWO_CARDS = host.DRIVER_LINES + host.A10 + host.T4
NATIVE = host.ROOT / "native/simulated_driver"


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("0", [host.A10_UUID]),
        ("1,0", [host.T4_UUID, host.A10_UUID]),
        (host.T4_UUID, [host.T4_UUID]),
        (host.T4_UUID[:12], [host.T4_UUID]),
        ("0,7,1", [host.A10_UUID]),
        ("0,0", []),
        ("", []),
        ("-1", []),
        ("GPU-", []),
    ],
)
def test_cuda_visible_devices(a10: host.Host, visible: str, expected: list[str]) -> None:
    a10.configure(TWO_CARDS)
    with a10.cuda(CUDA_VISIBLE_DEVICES=visible) as process:
        if not expected:
            assert process.call("init") == cuda.NO_DEVICE
            assert process.call("count")[0] == cuda.NOT_INITIALIZED
            return
        assert process.call("init") == cuda.SUCCESS
        assert process.call("count") == [cuda.SUCCESS, len(expected)]
        uuids = [process.call("uuid", device)[1] for device in range(len(expected))]
        assert uuids == [uuid.removeprefix("GPU-").replace("-", "") for uuid in expected]


def test_memory_of_a_chosen_device_is_charged_to_its_card(a10: host.Host) -> None:
    a10.configure(TWO_CARDS)
    with a10.cuda(CUDA_VISIBLE_DEVICES="1") as process:
        process.start()
        process.call("alloc", 1000)
        assert (a10.used_bytes(0), a10.used_bytes(1)) == (0, 1000)


@pytest.mark.parametrize(
    ("base", "version", "flags", "symbol"),
    [
        ("cuMemAlloc", 13000, 0, "cuMemAlloc_v2"),
        ("cuMemAlloc", 3020, 0, "cuMemAlloc_v2"),
        ("cuMemAlloc", 3010, 0, "cuMemAlloc"),
        ("cuCtxCreate", 11030, 0, "cuCtxCreate_v2"),
        ("cuCtxCreate", 12040, 0, "cuCtxCreate_v3"),
        ("cuCtxCreate", 99000, 0, "cuCtxCreate_v4"),
        ("cuCtxGetDevice", 12090, 0, "cuCtxGetDevice"),
        ("cuCtxGetDevice", 13000, 0, "cuCtxGetDevice_v2"),
        ("cuGetProcAddress", 11030, 0, "cuGetProcAddress"),
        ("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"),
        ("cuLaunchKernel", 13000, 0, "cuLaunchKernel"),
        ("cuLaunchKernel", 13000, 1, "cuLaunchKernel"),
        ("cuLaunchKernel", 13000, 2, "cuLaunchKernel_ptsz"),
        ("cuLaunchKernel", 6000, 2, "cuLaunchKernel"),
        ("cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds"),
        ("cuInit", 13000, 2, "cuInit"),
    ],
)
def test_get_proc_address_answers_the_version_asked_for(
    a10: host.Host, base: str, version: int, flags: int, symbol: str
) -> None:
    with a10.cuda() as process:
        expected = process.call("symbol", symbol)
        assert process.call("proc_address", base, version, flags) == [cuda.SUCCESS, expected, 0]


@pytest.mark.parametrize(
    ("base", "version", "status"),
    [
        ("cuNoSuchThing", 13000, 1),
        ("", 0, 1),
        ("cuMemAlloc_v2", 13000, 1),
        ("cuMemCreate", 9000, 2),
    ],
)
def test_get_proc_address_says_why_there_is_none(
    a10: host.Host, base: str, version: int, status: int
) -> None:
    with a10.cuda() as process:
        assert process.call("proc_address", base, version) == [cuda.NOT_FOUND, 0, status]
        assert process.call("proc_address", base, version, 8)[0] == cuda.INVALID_VALUE


def test_an_older_driver_does_not_know_newer_entry_points(a10: host.Host) -> None:
    a10.configure("driver_version = 525.1\ncuda_version = 12000\n" + host.A10)
    with a10.cuda() as process:
        assert process.call("version") == [cuda.SUCCESS, 12000]
        expected = process.call("symbol", "cuCtxGetDevice")
        assert process.call("proc_address", "cuCtxGetDevice", 13000) == [0, expected, 0]


def _dynamic(library: Path, *options: str) -> str:
    return subprocess.run(
        ["readelf", "--wide", *options, library], capture_output=True, text=True, check=True
    ).stdout


def _exported(library: Path) -> set[str]:
    """Names that the library defines, without those of the linker."""
    lines = _dynamic(library, "--dyn-syms").splitlines()
    rows = [line.split() for line in lines if " GLOBAL " in line or " WEAK " in line]
    return {row[7].split("@")[0] for row in rows if row[6] != "UND"}


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_exactly_the_listed_names_are_exported(arch: str) -> None:
    folder = host.ROOT / "src/casaba/_native" / arch / "simulated_driver"
    cuda_lists = [(NATIVE / f"cuda_{kind}.def").read_text() for kind in ("exports", "unsupported")]
    cuda_names = re.findall(r"^(?:EXPORT|TWIN)\(\w+,\s+\d+, (\w+)\)", "\n".join(cuda_lists), re.M)
    nvml_names = re.findall(
        r"^EXPORT\((\w+), \d+\)", (NATIVE / "nvml_exports.def").read_text(), re.M
    )
    assert _exported(host.built(folder / "libcuda.so.1")) == set(cuda_names)
    assert _exported(host.built(folder / "libnvidia-ml.so.1")) == set(nvml_names)


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
@pytest.mark.parametrize("name", ["libcuda.so.1", "libnvidia-ml.so.1"])
def test_the_libraries_need_only_the_c_library(arch: str, name: str) -> None:
    library = host.built(host.ROOT / "src/casaba/_native" / arch / "simulated_driver" / name)
    dynamic = _dynamic(library, "--dynamic")
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    assert {name for name in needed if not name.startswith("ld-linux")} == {"libc.so.6"}
    assert re.findall(r"SONAME.*\[(.*)\]", dynamic) == [name]
    versions = re.findall(r"GLIBC_2\.(\d+)", _dynamic(library, "--version-info"))
    assert max(map(int, versions)) <= 17


@pytest.mark.parametrize("door", ["", "_dlsym", "_getproc"])
def test_samples_reach_the_driver_through_every_door(a10: host.Host, door: str) -> None:
    shown = a10.run(host.sample(f"device_query{door}"))
    assert shown.returncode == 0, shown.stderr
    assert f"uuid: {host.A10_UUID}" in shown.stdout
    assert "total memory: 23028 MiB" in shown.stdout
    refused = a10.run(host.sample(f"alloc_until_refused{door}"), "--chunk-mib=4000")
    assert refused.returncode == 0
    assert refused.stdout.splitlines() == [
        *(f"{total} MiB allocated" for total in range(4000, 20001, 4000)),
        "24000 MiB refused: CUDA_ERROR_OUT_OF_MEMORY",
    ]


def test_the_scenarios_command_shows_the_card_and_trains(a10: host.Host) -> None:
    done = a10.run("bash", host.sample("run.sh"), "--num_batches=20", "--batch_size=8")
    assert done.returncode == 0, done.stderr
    assert "0MiB / 23028MiB" in done.stdout
    assert "working set: 512 MiB" in done.stdout
    assert "batch 20:" in done.stdout


def test_a_sample_without_a_card_says_so(a10: host.Host) -> None:
    a10.configure("driver_version = 580.126.09\ncuda_version = 13000\n")
    done = a10.run(host.sample("device_query"))
    assert (done.returncode, done.stderr) == (1, "cuInit: CUDA_ERROR_NO_DEVICE\n")
