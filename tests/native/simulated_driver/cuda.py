"""The CUDA driver API through ctypes, and a process that makes the calls it is sent.

A driver belongs to a process, so tests call it in processes of their own: ``CudaProcess.call``
names a method of ``Cuda`` and gets what it returned. Run as a module, this file is that process.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pynvml

SUCCESS = 0
INVALID_VALUE = 1
OUT_OF_MEMORY = 2
NOT_INITIALIZED = 3
NO_DEVICE = 100
INVALID_DEVICE = 101
INVALID_CONTEXT = 201
OPERATING_SYSTEM = 304
NOT_FOUND = 500
NOT_READY = 600
NOT_SUPPORTED = 801
ALREADY_MAPPED = 208

MIB = 1 << 20
GRANULARITY = 2 * MIB


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _AllocationProp(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("requested_handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32_metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class _AccessDesc(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class Cuda:
    """Each method makes one call and returns its CUresult, with the answers behind it if any."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._context = ctypes.c_void_p()

    def init(self, flags: int = 0) -> int:
        return int(self._driver.cuInit(flags))

    def version(self) -> tuple[int, int]:
        version = ctypes.c_int()
        return self._driver.cuDriverGetVersion(ctypes.byref(version)), version.value

    def count(self) -> tuple[int, int]:
        count = ctypes.c_int()
        return self._driver.cuDeviceGetCount(ctypes.byref(count)), count.value

    def uuid(self, device: int) -> tuple[int, str]:
        uuid = (ctypes.c_ubyte * 16)()
        return self._driver.cuDeviceGetUuid_v2(uuid, device), bytes(uuid).hex()

    def total(self, device: int) -> tuple[int, int]:
        total = ctypes.c_size_t()
        return self._driver.cuDeviceTotalMem_v2(ctypes.byref(total), device), total.value

    def retain(self, device: int = 0) -> int:
        result = self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), device)
        return int(result or self._driver.cuCtxSetCurrent(self._context))

    def release(self, device: int = 0) -> int:
        return int(self._driver.cuDevicePrimaryCtxRelease_v2(device))

    def reset(self, device: int = 0) -> int:
        return int(self._driver.cuDevicePrimaryCtxReset_v2(device))

    def create_context(self, device: int = 0) -> tuple[int, int]:
        context = ctypes.c_void_p()
        result = self._driver.cuCtxCreate_v2(ctypes.byref(context), 0, device)
        return result, context.value or 0

    def destroy_context(self, context: int) -> int:
        return int(self._driver.cuCtxDestroy_v2(ctypes.c_void_p(context)))

    def alloc(self, size: int) -> tuple[int, int]:
        pointer = ctypes.c_ulonglong()
        result = self._driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
        return result, pointer.value

    def alloc_v1(self, size: int) -> tuple[int, int]:
        pointer = ctypes.c_uint()
        return self._driver.cuMemAlloc(ctypes.byref(pointer), size), pointer.value

    def pitched(self, width: int, height: int, element: int = 4) -> tuple[int, int, int]:
        pointer, pitch = ctypes.c_ulonglong(), ctypes.c_size_t()
        result = self._driver.cuMemAllocPitch_v2(
            ctypes.byref(pointer),
            ctypes.byref(pitch),
            ctypes.c_size_t(width),
            ctypes.c_size_t(height),
            element,
        )
        return result, pointer.value, pitch.value

    def managed(self, size: int, flags: int = 1) -> tuple[int, int]:
        pointer = ctypes.c_ulonglong()
        result = self._driver.cuMemAllocManaged(ctypes.byref(pointer), ctypes.c_size_t(size), flags)
        return result, pointer.value

    def free(self, pointer: int) -> int:
        return int(self._driver.cuMemFree_v2(ctypes.c_ulonglong(pointer)))

    def address_range(self, pointer: int) -> tuple[int, int, int]:
        base, size = ctypes.c_ulonglong(), ctypes.c_size_t()
        result = self._driver.cuMemGetAddressRange_v2(
            ctypes.byref(base), ctypes.byref(size), ctypes.c_ulonglong(pointer)
        )
        return result, base.value, size.value

    def info(self) -> tuple[int, int, int]:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        result = self._driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return result, free.value, total.value

    def set_then_get(self, pointer: int, value: int, size: int) -> tuple[int, str]:
        back = (ctypes.c_ubyte * size)()
        result = self._driver.cuMemsetD8_v2(
            ctypes.c_ulonglong(pointer), value, ctypes.c_size_t(size)
        ) or self._driver.cuMemcpyDtoH_v2(back, ctypes.c_ulonglong(pointer), ctypes.c_size_t(size))
        return result, bytes(back).hex()

    def create(self, size: int, device: int = 0) -> tuple[int, int]:
        handle = ctypes.c_ulonglong()
        prop = _AllocationProp(type=1, location=_Location(1, device))
        result = self._driver.cuMemCreate(
            ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(prop), ctypes.c_ulonglong(0)
        )
        return result, handle.value

    def release_handle(self, handle: int) -> int:
        return int(self._driver.cuMemRelease(ctypes.c_ulonglong(handle)))

    def retain_handle(self, pointer: int) -> tuple[int, int]:
        handle = ctypes.c_ulonglong()
        result = self._driver.cuMemRetainAllocationHandle(
            ctypes.byref(handle), ctypes.c_void_p(pointer)
        )
        return result, handle.value

    def reserve(self, size: int) -> tuple[int, int]:
        pointer = ctypes.c_ulonglong()
        zero = ctypes.c_ulonglong(0)
        result = self._driver.cuMemAddressReserve(
            ctypes.byref(pointer), ctypes.c_size_t(size), ctypes.c_size_t(0), zero, zero
        )
        return result, pointer.value

    def free_addresses(self, pointer: int, size: int) -> int:
        return int(
            self._driver.cuMemAddressFree(ctypes.c_ulonglong(pointer), ctypes.c_size_t(size))
        )

    def map(self, pointer: int, size: int, handle: int) -> int:
        return int(
            self._driver.cuMemMap(
                ctypes.c_ulonglong(pointer),
                ctypes.c_size_t(size),
                ctypes.c_size_t(0),
                ctypes.c_ulonglong(handle),
                ctypes.c_ulonglong(0),
            )
        )

    def unmap(self, pointer: int, size: int) -> int:
        return int(self._driver.cuMemUnmap(ctypes.c_ulonglong(pointer), ctypes.c_size_t(size)))

    def set_access(self, pointer: int, size: int) -> int:
        desc = _AccessDesc(_Location(1, 0), 3)
        return int(
            self._driver.cuMemSetAccess(
                ctypes.c_ulonglong(pointer),
                ctypes.c_size_t(size),
                ctypes.byref(desc),
                ctypes.c_size_t(1),
            )
        )

    def proc_address(self, name: str, version: int, flags: int = 0) -> tuple[int, int, int]:
        """The result, the address and the status of cuGetProcAddress_v2."""
        address, status = ctypes.c_void_p(), ctypes.c_int(-1)
        result = self._driver.cuGetProcAddress_v2(
            name.encode(),
            ctypes.byref(address),
            version,
            ctypes.c_uint64(flags),
            ctypes.byref(status),
        )
        return result, address.value or 0, status.value

    def symbol(self, name: str) -> int:
        function = getattr(self._driver, name)
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    def results_in_fork_child(self) -> list[int]:
        """What a child of this process gets from cuInit and a call of every sort."""
        calls: tuple[Callable[[], int], ...] = (
            self.init,
            lambda: self.count()[0],
            lambda: self.total(0)[0],
            self.retain,
            lambda: self.alloc(MIB)[0],
            lambda: self.free(1),
            lambda: self.info()[0],
            lambda: self.create(GRANULARITY)[0],
        )
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writable, json.dumps([call() for call in calls]).encode())
            os._exit(0)
        os.close(writable)
        with os.fdopen(readable) as answer:
            results: list[int] = json.load(answer)
        os.waitpid(child, 0)
        return results

    def fork_sleeper(self) -> int:
        """Leaves a child behind that only waits until it is ended; its process id."""
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(0)
            os.close(1)
            os.close(writable)
            while True:
                signal.pause()
        os.close(writable)
        os.read(readable, 1)  # ends when the child has come out of the fork
        os.close(readable)
        return child

    def become_sleeper(self) -> None:
        os.execvp("sleep", ["sleep", "60"])

    def own_bytes_by_nvml(self) -> int:
        """NVML started, asked and shut down in this process."""
        pynvml.nvmlInit()
        card = pynvml.nvmlDeviceGetHandleByIndex(0)
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(card)
        pynvml.nvmlShutdown()
        return sum(process.usedGpuMemory for process in processes if process.pid == os.getpid())

    def many_blocks_s(self, count: int) -> float:
        """Seconds to take that many small blocks and to free them in another order."""
        begin = time.monotonic()
        pointers = [self.alloc(256)[1] for _ in range(count)]
        for pointer in pointers[::2] + pointers[1::2]:
            assert self.free(pointer) == SUCCESS
        return time.monotonic() - begin


class CudaProcess:
    """A process that has loaded the driver and makes calls on demand."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.pid = process.pid

    def call(self, method: str, *arguments: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([method, *arguments]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the process ended in {method}{arguments}"
        return json.loads(answer)

    def start(self, device: int = 0) -> None:
        """cuInit, and the device's primary context made current."""
        assert self.call("init") == SUCCESS
        assert self.call("retain", device) == SUCCESS

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def cuda_process(environment: Mapping[str, str], module: str = __name__) -> Iterator[CudaProcess]:
    """A process that runs ``module``: this one, or one whose main() makes more calls."""
    with subprocess.Popen(
        [sys.executable, "-m", module],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield CudaProcess(process)
        finally:
            process.kill()


def answer_calls(cuda: Cuda) -> None:
    """Makes the calls that come on standard input, until it is closed."""
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        print(json.dumps(getattr(cuda, method)(*arguments)), flush=True)


if __name__ == "__main__":
    answer_calls(Cuda())
