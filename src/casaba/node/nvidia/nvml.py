"""The few NVML functions that discovery needs, by ctypes (nvml.h of driver 440 and newer).

NVIDIA's own binding costs 15 MB of memory; this costs less than one.
"""

import _ctypes
import contextlib
import ctypes
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from casaba.errors import HostError

LIBRARY = "libnvidia-ml.so.1"

_LIBRARY_FOLDERS = (
    f"usr/lib/{platform.machine()}-linux-gnu",
    "usr/lib64",
    f"lib/{platform.machine()}-linux-gnu",
    "lib64",
    "usr/lib",
    "lib",
    "",
)

_TEXT_BYTES = 96

ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
}
"""nvmlDeviceArchitecture_t as HAMi's attribute spells it."""

BRANDS = {
    1: "Quadro",
    2: "Tesla",
    3: "NVS",
    4: "Grid",
    5: "GeForce",
    6: "Titan",
    7: "NvidiaVApps",
    8: "NvidiaVPC",
    9: "NvidiaVCS",
    10: "NvidiaVWS",
    11: "NvidiaCloudGaming",
    12: "QuadroRTX",
    13: "NvidiaRTX",
    14: "Nvidia",
    15: "GeForceRTX",
    16: "TitanRTX",
}
"""nvmlBrandType_t as HAMi's attribute spells it."""


class _PciInfo(ctypes.Structure):
    _fields_ = (
        ("bus_id_legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("pci_device_id", ctypes.c_uint),
        ("pci_subsystem_id", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    )


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t of the functions that end in _v2 and _v3."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used_memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _OldProcess(ctypes.Structure):
    """nvmlProcessInfo_v1_t, of drivers before 450."""

    _fields_ = (("pid", ctypes.c_uint), ("used_memory", ctypes.c_ulonglong))


_PROCESS_LISTS = (
    ("nvmlDeviceGetComputeRunningProcesses_v3", _Process),
    ("nvmlDeviceGetComputeRunningProcesses_v2", _Process),
    ("nvmlDeviceGetComputeRunningProcesses", _OldProcess),
)
"""Newest first."""

_PROCESSES_MAX = 1024


class NvmlError(HostError):
    """A call that NVML answered with an error."""


@dataclass(frozen=True, kw_only=True)
class NvmlDevice:
    """What NVML says of one card, in NVML's own terms."""

    uuid: str
    minor: int
    name: str
    brand: str
    architecture: str
    compute_capability: tuple[int, int]
    pci_domain: int
    pci_bus: int
    pci_device: int
    memory_bytes: int


def find_library(driver_root: Path) -> Path:
    """The driver's NVML below its root; raises HostError naming where it was looked for."""
    for folder in _LIBRARY_FOLDERS:
        candidate = driver_root / folder / LIBRARY
        if candidate.exists():
            return candidate
    raise HostError(
        f"no NVIDIA driver below {driver_root}: {LIBRARY} is in none of "
        f"{', '.join(_LIBRARY_FOLDERS)}; install the driver, or give --driver-root "
        "(GPU Operator: /run/nvidia/driver)"
    )


class Nvml:
    """An initialised NVML; blocking calls."""

    def __init__(self, library: Path) -> None:
        """Load a library without initialising it; raises HostError."""
        try:
            self._library = ctypes.CDLL(str(library))
        except OSError as error:
            raise HostError(f"can't load {library}: {error}") from error

    @contextlib.contextmanager
    def session(self) -> Iterator["Nvml"]:
        """Between nvmlInit_v2 and nvmlShutdown; raises NvmlError. The library is then let go.

        Between sessions nothing holds the driver: an open device keeps its module from being
        unloaded, and a library that stays loaded would be taken for its successor.
        """
        try:
            self.call("nvmlInit_v2")
            try:
                yield self
            finally:
                self._library.nvmlShutdown()
        finally:
            _ctypes.dlclose(self._library._handle)

    def has(self, name: str) -> bool:
        """Whether this driver's library has a function."""
        return hasattr(self._library, name)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function that answers with a code; raises NvmlError."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise NvmlError(f"this driver's NVML has no {name}") from None
        if code := function(*arguments):
            raise NvmlError(f"{name}: {self._error_text(code)} (NVML error {code})")

    def _error_text(self, code: int) -> str:
        self._library.nvmlErrorString.restype = ctypes.c_char_p
        return bytes(self._library.nvmlErrorString(code)).decode(errors="replace")

    def driver_version(self) -> str:
        """Such as 580.126.09."""
        return self._text("nvmlSystemGetDriverVersion")

    def cuda_driver_version(self) -> int:
        """Such as 13000."""
        return self._number("nvmlSystemGetCudaDriverVersion_v2", ctypes.c_int)

    def device_count(self) -> int:
        """Number of cards that the driver serves."""
        return self._number("nvmlDeviceGetCount_v2", ctypes.c_uint)

    def device(self, index: int) -> NvmlDevice:
        """Everything about the card with this NVML index; raises NvmlError."""
        handle = ctypes.c_void_p()
        self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call(
            "nvmlDeviceGetCudaComputeCapability",
            handle,
            ctypes.byref(major),
            ctypes.byref(minor),
        )
        pci, memory = _PciInfo(), _Memory()
        self.call("nvmlDeviceGetPciInfo_v3", handle, ctypes.byref(pci))
        self.call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
        brand = self._number("nvmlDeviceGetBrand", ctypes.c_uint, handle)
        architecture = self._number("nvmlDeviceGetArchitecture", ctypes.c_uint, handle)
        return NvmlDevice(
            uuid=self._text("nvmlDeviceGetUUID", handle),
            minor=self._number("nvmlDeviceGetMinorNumber", ctypes.c_uint, handle),
            name=self._text("nvmlDeviceGetName", handle),
            brand=BRANDS.get(brand, "Unknown"),
            architecture=ARCHITECTURES.get(architecture, "Unknown"),
            compute_capability=(major.value, minor.value),
            pci_domain=pci.domain,
            pci_bus=pci.bus,
            pci_device=pci.device,
            memory_bytes=memory.total,
        )

    def card(self, uuid: str) -> "NvmlCard":
        """The card with a UUID; raises NvmlError."""
        handle = ctypes.c_void_p()
        name = ctypes.c_char_p(uuid.encode())
        self.call("nvmlDeviceGetHandleByUUID", name, ctypes.byref(handle))
        return NvmlCard(self, handle)

    def _text(self, name: str, *before: object) -> str:
        buffer = ctypes.create_string_buffer(_TEXT_BYTES)
        self.call(name, *before, buffer, ctypes.c_uint(_TEXT_BYTES))
        return buffer.value.decode(errors="replace")

    def _number(self, name: str, kind: type[ctypes.c_int | ctypes.c_uint], *before: object) -> int:
        number = kind()
        self.call(name, *before, ctypes.byref(number))
        return number.value


class NvmlCard:
    """What a card does now; every call raises NvmlError where the card does not tell."""

    def __init__(self, nvml: Nvml, handle: ctypes.c_void_p) -> None:
        self._nvml = nvml
        self._handle = handle

    def memory_used_bytes(self) -> int:
        """Of everybody, with what the driver keeps for itself."""
        memory = _Memory()
        self._nvml.call("nvmlDeviceGetMemoryInfo", self._handle, ctypes.byref(memory))
        return int(memory.used)

    def utilization_percent(self) -> tuple[int, int]:
        """Of the card's kernels and of its memory."""
        rates = _Utilization()
        self._nvml.call("nvmlDeviceGetUtilizationRates", self._handle, ctypes.byref(rates))
        return int(rates.gpu), int(rates.memory)

    def pids(self) -> tuple[int, ...]:
        """Processes with a compute context, as far as our PID namespace sees them."""
        for name, kind in _PROCESS_LISTS:
            if self._nvml.has(name):
                count = ctypes.c_uint(_PROCESSES_MAX)
                found = (kind * _PROCESSES_MAX)()
                self._nvml.call(name, self._handle, ctypes.byref(count), found)
                return tuple(int(one.pid) for one in found[: count.value])
        raise NvmlError("this driver's NVML lists no processes")
