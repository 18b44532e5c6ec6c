/* Device memory by pointer. Memory is accounted in the bytes asked for, a pitched block as pitch x
 * height, managed memory in full from the start. The bytes are ordinary lazily backed pages of the
 * process, so that addresses are unique and small contents are really there. */
#include <limits.h>
#include <stdlib.h>

#include "cuda_blocks.h"
#include "cuda_capture.h"

enum { PITCH_ALIGNMENT = 512 };

static CUresult allocate(CUdeviceptr *pointer, size_t bytes, enum block_kind kind)
{
    struct block *block;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_check_unsafe();
    if (result == CUDA_SUCCESS && (pointer == NULL || bytes == 0))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = block_make(&block, bytes, kind);
    if (result == CUDA_SUCCESS)
        *pointer = block->range.base;
    return driver_leave(result);
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    return allocate(pointer, bytes, BLOCK_DEVICE);
}

CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes)
{
    CUdeviceptr wide = 0;
    CUresult result = allocate(pointer == NULL ? NULL : &wide, bytes, BLOCK_LOW_DEVICE);
    if (result == CUDA_SUCCESS)
        *pointer = (CUdeviceptr_v1)wide;
    return result;
}

/* The whole size of a pitched block, 0 when the shape is not allowed. */
static size_t pitched(size_t *pitch, size_t width_bytes, size_t height, unsigned int element_bytes)
{
    if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)
        return 0;
    if (width_bytes == 0 || height == 0 || width_bytes > SIZE_MAX - PITCH_ALIGNMENT)
        return 0;
    *pitch = (width_bytes + PITCH_ALIGNMENT - 1) / PITCH_ALIGNMENT * PITCH_ALIGNMENT;
    return height <= SIZE_MAX / *pitch ? *pitch * height : 0;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width_bytes, size_t height,
                            unsigned int element_bytes)
{
    size_t row = 0, bytes = pitched(&row, width_bytes, height, element_bytes);
    CUresult result = allocate(pitch == NULL ? NULL : pointer, bytes, BLOCK_DEVICE);
    if (result == CUDA_SUCCESS)
        *pitch = row;
    return result;
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width_bytes,
                         unsigned int height, unsigned int element_bytes)
{
    CUdeviceptr wide = 0;
    size_t row = 0, bytes = pitched(&row, width_bytes, height, element_bytes);
    CUresult result = allocate(pointer == NULL || pitch == NULL ? NULL : &wide, bytes,
                               BLOCK_LOW_DEVICE);
    if (result == CUDA_SUCCESS) {
        *pointer = (CUdeviceptr_v1)wide;
        *pitch = (unsigned int)row;
    }
    return result;
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        bytes = 0;
    return allocate(pointer, bytes, BLOCK_DEVICE);
}

static CUresult release(void **tree, CUdeviceptr pointer)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct block *block = range_at(tree, pointer);
    if (block == NULL || block->range.base != pointer || block->kind == BLOCK_IMPORTED)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    result = capture_check_unsafe();
    if (result == CUDA_SUCCESS)
        block_free(block);
    return driver_leave(result);
}

/* Freeing nothing is allowed. */
CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    CUresult result = release(&driver.blocks, pointer);
    return pointer == 0 && result == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : result;
}

CUresult cuMemFree(CUdeviceptr_v1 pointer)
{
    return cuMemFree_v2(pointer);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    const struct range *range = range_at(&driver.blocks, pointer);
    if (range == NULL)
        range = range_at(&driver.mapped, pointer);
    if (range == NULL)
        return driver_leave(CUDA_ERROR_NOT_FOUND);
    if (base != NULL)
        *base = range->base;
    if (bytes != NULL)
        *bytes = range->size;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 pointer)
{
    CUdeviceptr start = 0;
    size_t size = 0;
    CUresult result = cuMemGetAddressRange_v2(&start, &size, pointer);
    if (result != CUDA_SUCCESS)
        return result;
    if (base != NULL)
        *base = (CUdeviceptr_v1)start;
    if (bytes != NULL)
        *bytes = (unsigned int)size;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    CUcontext context;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (free_bytes == NULL || total_bytes == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return driver_leave(result);
    *total_bytes = card_of(context->device)->memory_bytes;
    *free_bytes = *total_bytes - account_used(&driver.account, context->card);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total_bytes)
{
    size_t left = 0, total = 0;
    if (free_bytes == NULL || total_bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuMemGetInfo_v2(&left, &total);
    if (result != CUDA_SUCCESS)
        return result;
    *free_bytes = left < UINT_MAX ? (unsigned int)left : UINT_MAX;
    *total_bytes = total < UINT_MAX ? (unsigned int)total : UINT_MAX;
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    (void)flags;
    CUdeviceptr address = 0;
    CUresult result = allocate(pointer == NULL ? NULL : &address, bytes, BLOCK_HOST);
    if (result == CUDA_SUCCESS)
        *pointer = (void *)(uintptr_t)address;
    return result;
}

CUresult cuMemAllocHost_v2(void **pointer, size_t bytes)
{
    return cuMemHostAlloc(pointer, bytes, 0);
}

CUresult cuMemAllocHost(void **pointer, unsigned int bytes)
{
    return cuMemHostAlloc(pointer, bytes, 0);
}

CUresult cuMemFreeHost(void *pointer)
{
    return release(&driver.host_blocks, (CUdeviceptr)(uintptr_t)pointer);
}
