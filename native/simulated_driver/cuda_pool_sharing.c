/* Pools of another process: what is imported of them is single blocks. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "card_shares.h"
#include "cuda_blocks.h"
#include "cuda_pools.h"

_Static_assert(sizeof(struct ticket) <= sizeof(CUmemPoolPtrExportData), "CUmemPoolPtrExportData");

/* The descriptor only tells the card, by its place behind those of shares. */
CUresult cuMemPoolExportToShareableHandle(void *shareable, CUmemoryPool pool,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
    CUresult result = pool_enter(pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (shareable == NULL || flags != 0 || !(pool->props.handleTypes & type))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    int descriptor = share_descriptor(&driver.account, SHARES + pool->card);
    *(int *)shareable = descriptor;
    return driver_leave(descriptor < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS);
}

static CUdevice device_of_descriptor(int descriptor)
{
    off_t place = account_is_own_file(&driver.account, descriptor)
                      ? lseek(descriptor, 0, SEEK_CUR) - SHARES
                      : -1;
    for (CUdevice device = 0; device < driver.device_count; device++)
        if (driver.cards[device] == place)
            return device;
    return -1;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shareable,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    CUdevice device = device_of_descriptor((int)(intptr_t)shareable);
    if (pool == NULL || flags != 0 || device < 0 ||
        type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    *pool = pool_make(device, &props);
    return driver_leave(*pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shared, CUdeviceptr pointer)
{
    struct ticket ticket;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct block *block = block_at(pointer);
    if (shared == NULL || block == NULL || block->kind != BLOCK_POOL ||
        (!block->shared && block->pool->props.handleTypes == CU_MEM_HANDLE_TYPE_NONE))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    bool before = block->shared;
    result = block_share(block, &ticket);
    if (result != CUDA_SUCCESS)
        return driver_leave(result);
    if (!before)
        pool_hand_over(block->pool, block->range.size);
    memset(shared, 0, sizeof *shared);
    memcpy(shared, &ticket, sizeof ticket);
    return driver_leave(CUDA_SUCCESS);
}

/* What is imported is freed as other memory. */
CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool,
                                CUmemPoolPtrExportData *shared)
{
    struct block *block;
    struct ticket ticket;
    CUresult result = pool_enter(pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (pointer == NULL || shared == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    memcpy(&ticket, shared, sizeof ticket);
    result = block_join(&block, &ticket, BLOCK_EXTERNAL);
    if (result == CUDA_SUCCESS)
        *pointer = block->range.base;
    return driver_leave(result);
}
