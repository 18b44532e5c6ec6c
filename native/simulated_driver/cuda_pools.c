#include "cuda_pools.h"

#include <stdlib.h>

#include "cuda_blocks.h"
#include "cuda_capture.h"

static CUmemoryPool pools;                    /* all living ones */
static CUmemoryPool default_pools[CARDS_MAX]; /* by device, made when first asked for */
static CUmemoryPool current_pools[CARDS_MAX];

CUmemoryPool pool_make(CUdevice device, const CUmemPoolProps *props)
{
    CUmemoryPool made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    *made = (struct CUmemPoolHandle_st){
        .next = pools, .card = driver.cards[device], .props = *props, .reuse = {1, 1, 1}};
    made->access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    pools = made;
    return made;
}

static CUmemoryPool default_pool(CUdevice device)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    if (default_pools[device] == NULL)
        default_pools[device] = pool_make(device, &props);
    return default_pools[device];
}

static CUmemoryPool current_pool(CUdevice device)
{
    return current_pools[device] != NULL ? current_pools[device] : default_pool(device);
}

static bool is_default(CUmemoryPool pool)
{
    for (unsigned device = 0; device < CARDS_MAX; device++)
        if (default_pools[device] == pool)
            return true;
    return false;
}

static void trim(CUmemoryPool pool, cuuint64_t keep)
{
    cuuint64_t after = pool->used > keep ? pool->used : keep;
    if (pool->reserved <= after)
        return;
    account_release(&driver.account, pool->card, pool->reserved - after);
    pool->reserved = after;
}

static void remove_pool(CUmemoryPool pool)
{
    CUmemoryPool *link = &pools;
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    free(pool);
}

void pools_trim(void)
{
    for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next)
        trim(pool, pool->threshold);
}

void pools_empty(unsigned card)
{
    for (CUmemoryPool pool = pools; pool != NULL; pool = pool->next)
        if (pool->card == card)
            trim(pool, 0);
}

void pool_hand_over(CUmemoryPool pool, size_t bytes)
{
    pool->reserved -= bytes;
    pool_give_back(pool, bytes);
}

void pool_give_back(CUmemoryPool pool, size_t bytes)
{
    pool->used -= bytes;
    if (!pool->destroyed)
        return;
    trim(pool, 0);
    if (pool->used == 0)
        remove_pool(pool);
}

/* Before memory is refused, what other pools only keep is given back. */
static bool reserve(CUmemoryPool pool, cuuint64_t bytes)
{
    if (bytes <= pool->reserved - pool->used)
        return true;
    cuuint64_t more = bytes - (pool->reserved - pool->used);
    if (!account_charge(&driver.account, pool->card, more)) {
        for (CUmemoryPool other = pools; other != NULL; other = other->next)
            if (other != pool)
                trim(other, 0);
        if (!account_charge(&driver.account, pool->card, more))
            return false;
    }
    pool->reserved += more;
    return true;
}

static CUresult take(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool)
{
    struct block *block;
    if (pool->props.maxSize != 0 && bytes > pool->props.maxSize - pool->used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (fault_refuses_allocation() || !reserve(pool, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = block_make(&block, bytes, BLOCK_POOL);
    if (result != CUDA_SUCCESS)
        return result;
    block->pool = pool;
    block->card = pool->card;
    pool->used += bytes;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    *pointer = block->range.base;
    return CUDA_SUCCESS;
}

static CUresult capture_take(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                             CUstream stream)
{
    CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                              .alloc = {.poolProps = pool->props, .bytesize = bytes}};
    CUresult result = capture_node(stream, &node);
    if (result == CUDA_SUCCESS)
        *pointer = node.alloc.dptr;
    return result;
}

static CUresult allocate(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (pool == NULL)
        pool = current_pool(stream->resource.context->device);
    if (pointer == NULL || bytes == 0)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (pool == NULL)
        return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
    return driver_leave(stream->capture != NULL ? capture_take(pointer, bytes, pool, stream)
                                                : take(pointer, bytes, pool));
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
    return allocate(pointer, bytes, NULL, stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
    return cuMemAllocAsync(pointer, bytes, per_thread(stream));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                                 CUstream stream)
{
    return pool == NULL ? CUDA_ERROR_INVALID_VALUE : allocate(pointer, bytes, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                                      CUstream stream)
{
    return cuMemAllocFromPoolAsync(pointer, bytes, pool, per_thread(stream));
}

/* The addresses are gone at once, as a program may not use them behind the call. */
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct block *block = block_at(pointer);
    if (block == NULL || block->kind == BLOCK_IMPORTED)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (stream->capture != NULL) {
        CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .freed = pointer};
        return driver_leave(capture_node(stream, &node));
    }
    block_free(block);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
    return cuMemFreeAsync(pointer, per_thread(stream));
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (pool == NULL || props == NULL || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(props->location.id))
        return driver_leave(CUDA_ERROR_INVALID_DEVICE);
    *pool = pool_make(props->location.id, props);
    return driver_leave(*pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

CUresult pool_enter(CUmemoryPool pool)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    return pool == NULL || pool->destroyed ? driver_leave(CUDA_ERROR_INVALID_VALUE) : CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    CUresult result = pool_enter(pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (is_default(pool))
        return driver_leave(CUDA_ERROR_NOT_PERMITTED);
    for (unsigned device = 0; device < CARDS_MAX; device++)
        if (current_pools[device] == pool)
            current_pools[device] = NULL;
    trim(pool, 0);
    pool->destroyed = true;
    if (pool->used == 0)
        remove_pool(pool);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes_to_keep)
{
    CUresult result = pool_enter(pool);
    if (result != CUDA_SUCCESS)
        return result;
    trim(pool, bytes_to_keep);
    return driver_leave(CUDA_SUCCESS);
}

static cuuint64_t *size_of(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return &pool->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return &pool->used_high;
    default: return NULL;
    }
}

static bool is_reuse(CUmemPool_attribute attribute)
{
    return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
           attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    CUresult result = pool_enter(pool);
    if (result != CUDA_SUCCESS)
        return result;
    const cuuint64_t *size = size_of(pool, attribute);
    if (value == NULL || (size == NULL && !is_reuse(attribute)))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (size != NULL)
        *(cuuint64_t *)value = *size;
    else
        *(int *)value = pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
    return driver_leave(CUDA_SUCCESS);
}

static CUresult set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, const void *value)
{
    if (is_reuse(attribute)) {
        pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] =
            *(const int *)value;
        return CUDA_SUCCESS;
    }
    cuuint64_t wanted = *(const cuuint64_t *)value;
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = wanted;
    else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && wanted == 0)
        pool->reserved_high = pool->reserved;
    else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && wanted == 0)
        pool->used_high = pool->used;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    CUresult result = pool_enter(pool);
    if (result != CUDA_SUCCESS)
        return result;
    return driver_leave(value == NULL ? CUDA_ERROR_INVALID_VALUE
                                      : set_attribute(pool, attribute, value));
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    CUresult result = pool_enter(pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (map == NULL && count > 0)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++)
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !is_device(map[i].location.id))
            return driver_leave(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++)
        pool->access[map[i].location.id] = map[i].flags;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    CUresult result = pool_enter(pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == NULL || location == NULL || !is_device(location->id))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *flags = pool->access[location->id];
    return driver_leave(CUDA_SUCCESS);
}

static CUresult answer_pool(CUmemoryPool *pool, CUdevice device,
                            CUmemoryPool (*find)(CUdevice device))
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (pool == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(device))
        return driver_leave(CUDA_ERROR_INVALID_DEVICE);
    *pool = find(device);
    return driver_leave(*pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    return answer_pool(pool, device, default_pool);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    return answer_pool(pool, device, current_pool);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    CUresult result = pool_enter(pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_device(device))
        return driver_leave(CUDA_ERROR_INVALID_DEVICE);
    if (pool->card != driver.cards[device])
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    current_pools[device] = pool;
    return driver_leave(CUDA_SUCCESS);
}

/* CUDA 13's forms, by location and type. */
static CUresult check_place(const CUmemLocation *location, CUmemAllocationType type)
{
    if (location == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                CUmemAllocationType type)
{
    CUresult result = check_place(location, type);
    return result == CUDA_SUCCESS ? cuDeviceGetDefaultMemPool(pool, location->id) : result;
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult result = check_place(location, type);
    return result == CUDA_SUCCESS ? cuDeviceGetMemPool(pool, location->id) : result;
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    CUresult result = check_place(location, type);
    return result == CUDA_SUCCESS ? cuDeviceSetMemPool(location->id, pool) : result;
}
