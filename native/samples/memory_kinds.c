#include "memory_kinds.h"

#include <string.h>

#include "doors.h"

enum { GRANULARITY = 2 * MIB, ROW = 4096 };

const char *const memory_kind_names[KIND_COUNT] = {"alloc", "pitch", "managed", "create"};

bool memory_kind_named(const char *name, enum memory_kind *kind)
{
    for (int i = 0; i < KIND_COUNT; i++)
        if (strcmp(memory_kind_names[i], name) == 0) {
            *kind = (enum memory_kind)i;
            return true;
        }
    return false;
}

static CUresult take_pitched(struct memory *memory)
{
    size_t pitch = 0, rows = (memory->bytes + ROW - 1) / ROW;
    CUresult result = cuda.cuMemAllocPitch_v2(&memory->pointer, &pitch, ROW, rows, 4);
    memory->bytes = pitch * rows;
    return result;
}

static CUresult join(struct memory *memory, int device)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = cuda.cuMemAddressReserve(&memory->pointer, memory->bytes, 0, 0, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = cuda.cuMemMap(memory->pointer, memory->bytes, 0, memory->handle, 0);
    if (result != CUDA_SUCCESS) {
        cuda.cuMemAddressFree(memory->pointer, memory->bytes);
        return result;
    }
    return cuda.cuMemSetAccess(memory->pointer, memory->bytes, &access, 1);
}

static CUresult take_mapped(struct memory *memory, int device)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    memory->bytes = (memory->bytes + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
    CUresult result = cuda.cuMemCreate(&memory->handle, memory->bytes, &prop, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = join(memory, device);
    if (result != CUDA_SUCCESS)
        cuda.cuMemRelease(memory->handle);
    return result;
}

CUresult memory_take(struct memory *memory, enum memory_kind kind, size_t bytes, int device)
{
    *memory = (struct memory){.kind = kind, .bytes = bytes};
    switch (kind) {
    case KIND_PITCH: return take_pitched(memory);
    case KIND_MANAGED:
        return cuda.cuMemAllocManaged(&memory->pointer, bytes, CU_MEM_ATTACH_GLOBAL);
    case KIND_CREATE: return take_mapped(memory, device);
    default: return cuda.cuMemAlloc_v2(&memory->pointer, bytes);
    }
}

CUresult memory_give_back(struct memory *memory)
{
    if (memory->kind != KIND_CREATE)
        return cuda.cuMemFree_v2(memory->pointer);
    CUresult result = cuda.cuMemUnmap(memory->pointer, memory->bytes);
    if (result == CUDA_SUCCESS)
        result = cuda.cuMemAddressFree(memory->pointer, memory->bytes);
    return result == CUDA_SUCCESS ? cuda.cuMemRelease(memory->handle) : result;
}
