"""Programs on NVIDIA's own binding of the CUDA driver API, each in a process of its own.

``python -m tests.conformance.cuda_calls NAME`` runs one and prints what it found as JSON. The
binding is imported by name: it has no types.
"""

import ctypes
import json
import os
import sys
from importlib import import_module
from typing import Any

driver: Any = import_module("cuda.bindings.driver")

MIB = 1 << 20
MS = 1_000_000
IPC_HANDLE_SIZE = 64


def must(outcome: tuple[Any, ...]) -> Any:
    """The answers of a call that has to succeed."""
    result, *answers = outcome
    if result != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(result))
    return answers[0] if len(answers) == 1 else answers


def name_of(outcome: tuple[Any, ...]) -> str:
    """The result of a call that is expected to fail."""
    return str(outcome[0].name)


class Card:
    """The first device with its primary context current, and a kernel that takes a time."""

    def __init__(self) -> None:
        must(driver.cuInit(0))
        must(driver.cuCtxSetCurrent(must(driver.cuDevicePrimaryCtxRetain(0))))
        self.kernel = must(
            driver.cuModuleGetFunction(must(driver.cuModuleLoadData(b"image")), b"spin")
        )
        self.stream = must(driver.cuStreamCreate(1))
        self.whole = self.free()

    def free(self) -> int:
        return int(must(driver.cuMemGetInfo())[0])

    def held_mib(self) -> float:
        """Memory of the card that is gone since the start."""
        return (self.whole - self.free()) / MIB

    def launch(self, work_ns: int, stream: Any = None) -> None:
        must(
            driver.cuLaunchKernel(
                self.kernel, 1, 1, 1, 1, 1, 1, 0, stream or self.stream,
                ((work_ns,), (ctypes.c_uint64,)), 0,
            )
        )  # fmt: skip

    def timed_ms(self, exec_graph: Any, count: int = 1) -> float:
        """Time between events around launches of a graph, the first of which is already there."""
        start, end = must(driver.cuEventCreate(0)), must(driver.cuEventCreate(0))
        self.launch(MS)
        must(driver.cuEventRecord(start, self.stream))
        for _ in range(count):
            must(driver.cuGraphLaunch(exec_graph, self.stream))
        must(driver.cuEventRecord(end, self.stream))
        must(driver.cuStreamSynchronize(self.stream))
        return round(float(must(driver.cuEventElapsedTime(start, end))), 3)


def device() -> dict[str, Any]:
    card = Card()
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    missing = driver.cuCtxGetLimit(driver.CUlimit.CU_LIMIT_STACK_SIZE)
    return {
        "version": must(driver.cuDriverGetVersion()),
        "name": must(driver.cuDeviceGetName(64, 0)).rstrip(b"\0 ").decode(),
        "memory_mib": must(driver.cuDeviceTotalMem(0)) // MIB,
        "multiprocessors": must(driver.cuDeviceGetAttribute(attribute, 0)),
        "free_mib": card.free() // MIB,
        "error_text": must(driver.cuGetErrorString(driver.CUresult.CUDA_ERROR_NOT_READY)).decode(),
        "not_here": name_of(missing),
    }


def copies() -> dict[str, Any]:
    Card()
    pointer = must(driver.cuMemAlloc(MIB))
    back = bytearray(16)
    must(driver.cuMemsetD32(pointer, 0x01020304, 4))
    must(driver.cuMemcpyDtoH(back, pointer, 16))
    must(driver.cuMemFree(pointer))
    return {"bytes": back.hex(), "twice": name_of(driver.cuMemFree(pointer))}


def capture(card: Card) -> Any:
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    must(driver.cuStreamBeginCapture(card.stream, mode))


def graphs() -> dict[str, Any]:
    """A captured graph with a fork, a join and memory; and an explicit one."""
    card = Card()
    other, fork, join = must(driver.cuStreamCreate(1)), None, None
    fork, join = must(driver.cuEventCreate(2)), must(driver.cuEventCreate(2))
    capture(card)
    card.launch(2 * MS)
    must(driver.cuEventRecord(fork, card.stream))
    must(driver.cuStreamWaitEvent(other, fork, 0))
    card.launch(3 * MS, other)
    pointer = must(driver.cuMemAllocAsync(64 * MIB, card.stream))
    card.launch(MS)
    must(driver.cuMemFreeAsync(pointer, card.stream))
    must(driver.cuEventRecord(join, other))
    must(driver.cuStreamWaitEvent(card.stream, join, 0))
    graph = must(driver.cuStreamEndCapture(card.stream))
    _, nodes = must(driver.cuGraphGetNodes(graph))
    exec_graph = must(driver.cuGraphInstantiate(graph, 0))
    before = card.held_mib()
    took = card.timed_ms(exec_graph, 5)
    after = card.held_mib()
    must(driver.cuDeviceGraphMemTrim(0))
    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.func = card.kernel
    params.gridDimX = params.gridDimY = params.gridDimZ = 1
    params.blockDimX = params.blockDimY = params.blockDimZ = 1
    params.kernelParams = ((4 * MS,), (ctypes.c_uint64,))
    explicit = must(driver.cuGraphCreate(0))
    first = must(driver.cuGraphAddKernelNode(explicit, None, 0, params))
    second = must(driver.cuGraphAddKernelNode(explicit, [first], 1, params))
    must(driver.cuGraphAddEmptyNode(explicit, [first, second], 2))
    return {
        "nodes": nodes,
        "took_ms": took,
        "held_mib": [before, after, card.held_mib()],
        "explicit_ms": card.timed_ms(must(driver.cuGraphInstantiate(explicit, 0))),
    }


def kept_graph_memory() -> dict[str, Any]:
    """What a graph allocates and does not free is the program's until it is freed."""
    card = Card()
    capture(card)
    pointer = must(driver.cuMemAllocAsync(64 * MIB, card.stream))
    graph = must(driver.cuStreamEndCapture(card.stream))
    exec_graph = must(driver.cuGraphInstantiate(graph, 0))
    held = [card.held_mib()]
    must(driver.cuGraphLaunch(exec_graph, card.stream))
    must(driver.cuDeviceGraphMemTrim(0))
    held.append(card.held_mib())
    must(driver.cuGraphExecDestroy(exec_graph))
    must(driver.cuGraphDestroy(graph))
    must(driver.cuMemFreeAsync(pointer, card.stream))
    must(driver.cuStreamSynchronize(card.stream))
    must(driver.cuDeviceGraphMemTrim(0))
    return {"held_mib": [*held, card.held_mib()]}


def broken_captures() -> dict[str, Any]:
    """Calls that a capture does not bear, and how it then ends."""
    card = Card()
    found: dict[str, Any] = {}

    def end() -> str:
        return name_of(driver.cuStreamEndCapture(card.stream))

    capture(card)
    found["allocation"] = [name_of(driver.cuMemAlloc(MIB)), end()]
    capture(card)
    found["wait"] = [name_of(driver.cuStreamSynchronize(card.stream)), end()]
    event = must(driver.cuEventCreate(0))
    must(driver.cuEventRecord(event, card.stream))
    capture(card)
    found["outside"] = [name_of(driver.cuStreamWaitEvent(card.stream, event, 0)), end()]
    other = must(driver.cuStreamCreate(1))
    capture(card)
    must(driver.cuEventRecord(event, card.stream))
    must(driver.cuStreamWaitEvent(other, event, 0))
    card.launch(0, other)
    found["unjoined"] = [end()]
    found["legacy"] = [
        name_of(
            driver.cuStreamBeginCapture(
                driver.CUstream(0), driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
            )
        )
    ]
    blocking = must(driver.cuStreamCreate(0))
    must(
        driver.cuStreamBeginCapture(
            blocking, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
        )
    )
    launched = driver.cuLaunchKernel(
        card.kernel, 1, 1, 1, 1, 1, 1, 0, 0, ((0,), (ctypes.c_uint64,)), 0
    )
    found["implicit"] = [name_of(launched), name_of(driver.cuStreamEndCapture(blocking))]
    relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    capture(card)
    must(driver.cuThreadExchangeStreamCaptureMode(relaxed))
    found["relaxed"] = [name_of(driver.cuMemAlloc(MIB)), end()]
    return found


def pools() -> dict[str, Any]:
    """A pool keeps what is freed until the program waits, above its threshold."""
    card = Card()
    attribute = driver.CUmemPool_attribute
    held = []
    pointer = must(driver.cuMemAllocAsync(8 * MIB, card.stream))
    held.append(card.held_mib())
    must(driver.cuMemFreeAsync(pointer, card.stream))
    held.append(card.held_mib())
    must(driver.cuStreamSynchronize(card.stream))
    held.append(card.held_mib())
    pool = must(driver.cuDeviceGetDefaultMemPool(0))
    must(
        driver.cuMemPoolSetAttribute(
            pool, attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, driver.cuuint64_t(2 * MIB)
        )
    )
    pointer = must(driver.cuMemAllocFromPoolAsync(8 * MIB, pool, card.stream))
    must(driver.cuMemFreeAsync(pointer, card.stream))
    must(driver.cuStreamSynchronize(card.stream))
    held.append(card.held_mib())
    must(driver.cuMemPoolTrimTo(pool, 0))
    held.append(card.held_mib())
    used = attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH
    high = int(must(driver.cuMemPoolGetAttribute(pool, used))) // MIB
    return {"held_mib": held, "used_high_mib": high}


def own_pool() -> dict[str, Any]:
    card = Card()
    props = driver.CUmemPoolProps()
    props.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    props.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    props.location.id = 0
    pool = must(driver.cuMemPoolCreate(props))
    must(driver.cuDeviceSetMemPool(0, pool))
    pointer = must(driver.cuMemAllocAsync(8 * MIB, card.stream))
    must(driver.cuMemPoolDestroy(pool))
    held = [card.held_mib()]
    must(driver.cuMemFreeAsync(pointer, card.stream))
    default = must(driver.cuDeviceGetDefaultMemPool(0))
    return {
        "held_mib": [*held, card.held_mib()],
        "default_again": int(must(driver.cuDeviceGetMemPool(0))) == int(default),
        "default_destroyed": name_of(driver.cuMemPoolDestroy(default)),
    }


def exported_pool() -> dict[str, Any]:
    """Memory of an exported pool is the card's until its maker and its importer let go."""
    card = Card()
    kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    props = driver.CUmemPoolProps()
    props.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    props.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    props.handleTypes = kind
    pool = must(driver.cuMemPoolCreate(props))
    descriptor = must(driver.cuMemPoolExportToShareableHandle(pool, kind, 0))
    pointer = must(driver.cuMemAllocFromPoolAsync(8 * MIB, pool, card.stream))
    shared = must(driver.cuMemPoolExportPointer(pointer))
    imported = must(driver.cuMemPoolImportFromShareableHandle(descriptor, kind, 0))
    os.close(int(descriptor))
    second = must(driver.cuMemPoolImportPointer(imported, shared))
    held = [card.held_mib()]
    must(driver.cuMemFree(second))
    held.append(card.held_mib())
    must(driver.cuMemFree(pointer))
    return {"held_mib": [*held, card.held_mib()]}


def green_context() -> dict[str, Any]:
    card = Card()
    kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
    resource = must(driver.cuDeviceGetDevResource(0, kind))
    description = must(driver.cuDevResourceGenerateDesc([resource], 1))
    green = must(driver.cuGreenCtxCreate(description, 0, 1))
    must(driver.cuCtxPushCurrent(must(driver.cuCtxFromGreenCtx(green))))
    stream = must(driver.cuGreenCtxStreamCreate(green, 1, 0))
    must(driver.cuStreamSynchronize(stream))
    must(driver.cuCtxPopCurrent())
    held = card.held_mib()
    must(driver.cuGreenCtxDestroy(green))
    return {"multiprocessors": resource.sm.smCount, "held_mib": [held, card.held_mib()]}


def arrays() -> dict[str, Any]:
    card = Card()
    flat = driver.CUDA_ARRAY_DESCRIPTOR()
    flat.Width, flat.Height, flat.NumChannels = 1024, 1024, 4
    flat.Format = driver.CUarray_format.CU_AD_FORMAT_FLOAT
    deep = driver.CUDA_ARRAY3D_DESCRIPTOR()
    deep.Width, deep.Height, deep.Depth, deep.NumChannels = 1024, 1024, 0, 1
    deep.Format = driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8
    array = must(driver.cuArrayCreate(flat))
    held = [card.held_mib()]
    mipmap = must(driver.cuMipmappedArrayCreate(deep, 3))
    held.append(card.held_mib())
    level = must(driver.cuMipmappedArrayGetLevel(mipmap, 2))
    width = must(driver.cuArray3DGetDescriptor(level)).Width
    must(driver.cuArrayDestroy(array))
    must(driver.cuMipmappedArrayDestroy(mipmap))
    return {"held_mib": [*held, card.held_mib()], "level_width": width}


def export() -> dict[str, Any]:
    """Makes memory that others can open, and frees it when a line comes."""
    card = Card()
    pointer = must(driver.cuMemAlloc(8 * MIB))
    handle = must(driver.cuIpcGetMemHandle(pointer))
    print(json.dumps(ctypes.string_at(handle.getPtr(), IPC_HANDLE_SIZE).hex()), flush=True)
    sys.stdin.readline()
    must(driver.cuMemFree(pointer))
    return {"held_mib": card.held_mib()}


def import_() -> dict[str, Any]:
    """Opens what its argument tells, and closes it when a line comes."""
    card = Card()
    handle = driver.CUipcMemHandle()
    ctypes.memmove(handle.getPtr(), bytes.fromhex(sys.argv[2]), IPC_HANDLE_SIZE)
    opened = driver.cuIpcOpenMemHandle(handle, 1)
    print(json.dumps(name_of(opened)), flush=True)
    sys.stdin.readline()
    if opened[0] == driver.CUresult.CUDA_SUCCESS:
        must(driver.cuIpcCloseMemHandle(opened[1]))
    return {"free_mib": card.free() / MIB}


def shareable() -> dict[str, Any]:
    """A descriptor of memory holds it, and so does what is imported from it."""
    card = Card()
    prop = driver.CUmemAllocationProp()
    prop.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    prop.location.id = 0
    kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    prop.requestedHandleTypes = kind
    handle = must(driver.cuMemCreate(8 * MIB, prop, 0))
    descriptor = must(driver.cuMemExportToShareableHandle(handle, kind, 0))
    must(driver.cuMemRelease(handle))
    held = [card.held_mib()]
    imported = must(driver.cuMemImportFromShareableHandle(descriptor, kind))
    os.close(int(descriptor))
    held.append(card.held_mib())
    must(driver.cuMemRelease(imported))
    return {"held_mib": [*held, card.held_mib()]}


PROGRAMS = {
    "device": device,
    "copies": copies,
    "graphs": graphs,
    "kept_graph_memory": kept_graph_memory,
    "broken_captures": broken_captures,
    "pools": pools,
    "own_pool": own_pool,
    "exported_pool": exported_pool,
    "green_context": green_context,
    "arrays": arrays,
    "export": export,
    "import": import_,
    "shareable": shareable,
}

if __name__ == "__main__":
    print(json.dumps(PROGRAMS[sys.argv[1]]()), flush=True)
