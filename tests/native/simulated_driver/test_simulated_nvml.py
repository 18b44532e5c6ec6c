import subprocess
import sys

import pynvml
import pytest

from tests.native.simulated_driver import cuda, host
from tests.native.simulated_driver.cuda import MIB


def test_the_scenarios_card_as_nvml_tells_it(a10: host.Host) -> None:
    with host.nvml():
        assert pynvml.nvmlSystemGetDriverVersion() == "580.126.09"
        assert pynvml.nvmlSystemGetNVMLVersion() == "13.580.126.09"
        assert pynvml.nvmlSystemGetCudaDriverVersion() == 13000
        assert pynvml.nvmlDeviceGetCount() == 1
        card = pynvml.nvmlDeviceGetHandleByUUID(host.A10_UUID)
        assert pynvml.nvmlDeviceGetName(card) == "NVIDIA A10"
        assert pynvml.nvmlDeviceGetUUID(card) == host.A10_UUID
        assert pynvml.nvmlDeviceGetBrand(card) == pynvml.NVML_BRAND_NVIDIA
        assert pynvml.nvmlDeviceGetArchitecture(card) == pynvml.NVML_DEVICE_ARCH_AMPERE
        assert pynvml.nvmlDeviceGetCudaComputeCapability(card) == (8, 6)
        assert pynvml.nvmlDeviceGetMinorNumber(card) == 0
        assert pynvml.nvmlDeviceGetNumGpuCores(card) == 9216
        pci = pynvml.nvmlDeviceGetPciInfo(card)
        assert (pci.busId, pci.busIdLegacy) == ("00000000:00:03.0", "0000:00:03.0")
        by_bus_id = pynvml.nvmlDeviceGetHandleByPciBusId("0000:00:03.0")
        assert pynvml.nvmlDeviceGetUUID(by_bus_id) == host.A10_UUID
        for version in (None, pynvml.nvmlMemory_v2):
            memory = pynvml.nvmlDeviceGetMemoryInfo(card, version=version)
            assert (memory.total, memory.used) == (host.A10_MIB * MIB, 0)
            assert memory.free == memory.total


def test_cuda_and_nvml_name_the_same_card(a10: host.Host) -> None:
    with a10.cuda() as process, host.nvml():
        process.start()
        uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0))
        assert process.call("uuid", 0)[1] == uuid.removeprefix("GPU-").replace("-", "")


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        ("nvmlDeviceGetMigMode", pynvml.NVML_ERROR_NOT_SUPPORTED),
        ("nvmlDeviceGetDriverModel", pynvml.NVML_ERROR_NOT_SUPPORTED),
        ("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", pynvml.NVML_ERROR_NOT_SUPPORTED),
        ("nvmlDeviceGetFanSpeed", pynvml.NVML_ERROR_NOT_SUPPORTED),
        ("nvmlDeviceGetBoardId", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND),
    ],
)
def test_what_the_card_does_not_have(a10: host.Host, ask: str, error: int) -> None:
    with host.nvml():
        card = pynvml.nvmlDeviceGetHandleByIndex(0)
        with pytest.raises(pynvml.NVMLError) as refusal:
            getattr(pynvml, ask)(card)
        assert refusal.value.value == error


def test_versioned_structs_are_checked(a10: host.Host) -> None:
    with host.nvml():
        card = pynvml.nvmlDeviceGetHandleByIndex(0)
        with pytest.raises(pynvml.NVMLError) as refusal:
            pynvml.nvmlDeviceGetMemoryInfo(card, version=0x03000028)
        assert refusal.value.value == pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH


def test_nvml_has_to_be_started(a10: host.Host) -> None:
    with host.nvml():
        pass
    with pytest.raises(pynvml.NVMLError) as refusal:
        pynvml.nvmlDeviceGetCount()
    assert refusal.value.value == pynvml.NVML_ERROR_UNINITIALIZED


def test_nvml_in_a_cuda_process_does_not_end_its_claim(a10: host.Host) -> None:
    """Record locks fall when a process closes any descriptor of their file: NVML must not."""
    with a10.cuda() as process:
        process.start()
        process.call("alloc", MIB)
        assert process.call("own_bytes_by_nvml") == MIB
        assert process.call("own_bytes_by_nvml") == MIB
        assert a10.process_bytes() == {process.pid: MIB}


CLIENTS = {
    "nvidia-ml-py": (
        sys.executable,
        "-c",
        "import pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0);"
        "m = n.nvmlDeviceGetMemoryInfo(h);"
        "print(n.nvmlDeviceGetName(h), m.used >> 20, m.total >> 20)",
    ),
    "nvitop": (sys.executable, "-m", "nvitop", "-1"),
    "gpustat": (sys.executable, "-m", "gpustat", "--show-all"),
}
SHOWN = {
    "nvidia-ml-py": ("NVIDIA A10 64 23028",),
    "nvitop": ("A10", "64.00MiB / 22.49GiB", "580.126.09"),
    "gpustat": ("NVIDIA A10", "64 / 23028", "(64M)"),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_unmodified_clients_show_the_card(a10: host.Host, client: str) -> None:
    with a10.cuda() as process:
        process.start()
        process.call("alloc", 64 * MIB)
        done = a10.run(*CLIENTS[client], COLUMNS="120")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    for text in SHOWN[client]:
        assert text in done.stdout


def test_nvidia_smi_shows_the_table(a10: host.Host) -> None:
    idle = a10.run("nvidia-smi")
    assert idle.returncode == 0, idle.stderr
    for text in (
        "Driver Version: 580.126.09",
        "CUDA Version: 13.0",
        "NVIDIA A10",
        "00000000:00:03.0",
        " 0MiB / 23028MiB |",
        "No running processes found",
    ):
        assert text in idle.stdout
    widths = {len(line) for line in idle.stdout.splitlines() if line.startswith(("|", "+"))}
    assert widths == {91}
    with a10.cuda() as process:
        process.start()
        process.call("alloc", 100 * MIB)
        busy = a10.run("nvidia-smi").stdout
    assert "100MiB / 23028MiB" in busy
    (row,) = [line for line in busy.splitlines() if f" {process.pid} " in line]
    assert "python" in row
    assert "100MiB" in row


def test_nvidia_smi_lists_and_queries(a10: host.Host) -> None:
    a10.configure(host.DRIVER_LINES + host.A10 + host.T4)
    assert a10.run("nvidia-smi", "-L").stdout.splitlines() == [
        f"GPU 0: NVIDIA A10 (UUID: {host.A10_UUID})",
        f"GPU 1: Tesla T4 (UUID: {host.T4_UUID})",
    ]
    fields = "--query-gpu=index,name,memory.total,utilization.gpu,pci.bus_id"
    assert a10.run("nvidia-smi", fields, "--format=csv").stdout.splitlines() == [
        "index, name, memory.total [MiB], utilization.gpu [%], pci.bus_id",
        "0, NVIDIA A10, 23028 MiB, 0 %, 00000000:00:03.0",
        "1, Tesla T4, 15360 MiB, 0 %, 00000000:00:04.0",
    ]
    bare = a10.run("nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits")
    assert bare.stdout == "23028\n15360\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--query-gpu=colour", "--format=csv"), "'colour'"),
        (("--query-gpu=name", "--format=xml"), "xml"),
        (("--reset",), "'--reset'"),
    ],
)
def test_nvidia_smi_names_a_bad_argument(
    a10: host.Host, arguments: tuple[str, ...], named: str
) -> None:
    done = a10.run("nvidia-smi", *arguments)
    assert done.returncode == 2
    assert named in done.stderr


def test_nvidia_smi_without_a_driver(a10: host.Host) -> None:
    done = a10.run(host.DRIVER / "nvidia-smi", LD_LIBRARY_PATH="/nonexistent")
    assert done.returncode == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
    assert "libnvidia-ml.so.1" in done.stderr
    assert "LD_LIBRARY_PATH" in done.stderr


def _bad(text: str, line: int, *named: str) -> object:
    return pytest.param(text, line, named, id="-".join(named))


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        _bad("cuda_version = 13000\n" + host.A10, 1, "driver_version", "missing"),
        _bad("driver_version = new\n", 1, "driver_version", "'new'"),
        _bad(host.DRIVER_LINES + "[card]\nmodel = B200\n", 4, "model", "'B200'"),
        _bad(host.DRIVER_LINES + "[card]\nuuid = GPU-1\n", 4, "uuid", "'GPU-1'"),
        _bad(host.DRIVER_LINES + "[card]\nbus_id = 3\n", 4, "bus_id", "'3'"),
        _bad(host.DRIVER_LINES + "[card]\nmodel = A10\n", 3, "uuid", "missing"),
        _bad(host.DRIVER_LINES + "[card]\ncolour = red\n", 4, "'colour'"),
        _bad(host.DRIVER_LINES + "what\n", 3, "'what'"),
        _bad(host.DRIVER_LINES + host.A10 + host.A10, 8, "earlier"),
        _bad(host.DRIVER_LINES + "[card]\nmemory_mib = -5\n", 4, "memory_mib", "'-5'"),
    ],
)
def test_a_bad_setting_is_named(
    a10: host.Host, text: str, line: int, named: tuple[str, ...]
) -> None:
    a10.configure(text)
    done = a10.run("nvidia-smi")
    assert done.returncode == pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    assert f"{a10.folder}/cards.conf:{line}: " in done.stderr
    assert all(word in done.stderr for word in named)
    with a10.cuda() as process:
        assert process.call("init") == cuda.OPERATING_SYSTEM


def test_a_driver_that_fails_does_not_print_unless_asked(a10: host.Host) -> None:
    (a10.folder / "cards.conf").unlink()
    quiet = a10.run(host.sample("device_query"))
    assert quiet.stderr == "cuInit: CUDA_ERROR_OPERATING_SYSTEM\n"
    asked = a10.run(host.sample("device_query"), CASABA_SIMULATED_VERBOSE="1")
    assert f"{a10.folder}/cards.conf cannot be read" in asked.stderr


def test_cards_that_changed_under_a_live_state_are_refused(a10: host.Host) -> None:
    assert a10.run("nvidia-smi").returncode == 0
    a10.configure(host.DRIVER_LINES + host.T4)
    changed = a10.run("nvidia-smi")
    assert changed.returncode == pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    assert f"{a10.folder}/state was made for other cards" in changed.stderr
    (a10.folder / "state").unlink()
    assert "Tesla T4" in a10.run("nvidia-smi").stdout


@pytest.mark.skipif(not host.can_make_namespaces(), reason="namespaces are not allowed here")
@pytest.mark.parametrize(
    ("nodes", "shown"),
    [
        ("nvidia1", ["Tesla T4"]),
        ("nvidia0 nvidia1", ["NVIDIA A10", "Tesla T4"]),
        ("null", ["NVIDIA A10", "Tesla T4"]),
    ],
)
def test_only_cards_with_a_device_node_are_seen(
    a10: host.Host, nodes: str, shown: list[str]
) -> None:
    a10.configure("device_nodes = when_present\n" + host.DRIVER_LINES + host.A10 + host.T4)
    script = f"mount -t tmpfs none /dev && cd /dev && touch {nodes} && exec nvidia-smi -L"
    inner = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script)
    listed: subprocess.CompletedProcess[str] = a10.run(*inner)
    assert listed.returncode == 0, listed.stderr
    names = [line.split(": ")[1].split(" (")[0] for line in listed.stdout.splitlines()]
    assert names == shown
