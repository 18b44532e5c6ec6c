/* Virtual memory management: memory (cuMemCreate) and addresses (cuMemAddressReserve) made apart
 * and joined by cuMemMap. Memory is the card's until its handle is released as often as it was
 * given out and it is mapped nowhere. The bytes belong to the mapping: memory that is unmapped and
 * mapped elsewhere is zero again. */
#define _GNU_SOURCE
#include "cuda_virtual.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "card_shares.h"
#include "cuda_capture.h"

enum { GRANULARITY = 2 << 20 };

struct physical {
    struct range handle; /* one address long */
    unsigned card;
    CUmemAllocationProp prop;
    size_t bytes;
    unsigned references, mappings;
    bool shared; /* accounted in card_shares.h, with this number */
    unsigned share;
};

static bool whole(CUdeviceptr value)
{
    return value % GRANULARITY == 0;
}

static CUresult check_prop(const CUmemAllocationProp *prop)
{
    if (prop == NULL || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    return is_device(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static void drop_if_unused(struct physical *physical)
{
    if (physical->references > 0 || physical->mappings > 0)
        return;
    range_remove(&driver.handles, &physical->handle);
    if (physical->shared)
        share_leave(&driver.account, physical->share);
    else
        account_release(&driver.account, physical->card, physical->bytes);
    free(physical);
}

/* A handle for memory that is already accounted. NULL when there is no memory for it. */
static struct physical *add_physical(const CUmemAllocationProp *prop, unsigned card, size_t bytes)
{
    static CUmemGenericAllocationHandle last_handle;
    struct physical *physical = calloc(1, sizeof *physical);
    if (physical == NULL)
        return NULL;
    *physical = (struct physical){
        .handle = {++last_handle, 1}, .card = card, .prop = *prop, .bytes = bytes, .references = 1};
    if (range_insert(&driver.handles, &physical->handle))
        return physical;
    free(physical);
    return NULL;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes,
                       const CUmemAllocationProp *prop)
{
    unsigned card = driver.cards[prop->location.id];
    if (fault_refuses_allocation() || !account_charge(&driver.account, card, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const struct physical *physical = add_physical(prop, card, bytes);
    if (physical == NULL) {
        account_release(&driver.account, card, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = physical->handle.base;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (handle == NULL || bytes == 0 || !whole(bytes) || flags != 0)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    result = check_prop(prop);
    if (result == CUDA_SUCCESS &&
        (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        result = capture_check_unsafe();
    return driver_leave(result == CUDA_SUCCESS ? create(handle, bytes, prop) : result);
}

static CUresult export(int *descriptor, struct physical *physical)
{
    if (!physical->shared) {
        int number = share_make(&driver.account, physical->card, physical->bytes);
        if (number < 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
        physical->share = (unsigned)number;
        physical->shared = true;
    }
    *descriptor = share_descriptor(&driver.account, physical->share);
    return *descriptor < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

/* Contents are not shared here: each process sees bytes of its own. */
CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct physical *physical = range_at(&driver.handles, handle);
    if (shareable == NULL || physical == NULL || flags != 0 ||
        !(physical->prop.requestedHandleTypes & type))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    return driver_leave(export(shareable, physical));
}

static CUdevice device_of(unsigned card)
{
    for (CUdevice device = 0; device < driver.device_count; device++)
        if (driver.cards[device] == card)
            return device;
    return -1;
}

static CUresult import(CUmemGenericAllocationHandle *handle, int descriptor)
{
    unsigned number;
    uint64_t key;
    struct share share;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    if (!share_of_descriptor(&driver.account, descriptor, &number, &key) ||
        !share_join(&driver.account, number, key, &share))
        return CUDA_ERROR_INVALID_VALUE;
    prop.location.id = device_of(share.card);
    struct physical *physical = add_physical(&prop, share.card, share.bytes);
    if (physical == NULL) {
        share_leave(&driver.account, number);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->share = number;
    physical->shared = true;
    *handle = physical->handle.base;
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (handle == NULL || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    return driver_leave(import(handle, (int)(intptr_t)shareable));
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct physical *physical = range_at(&driver.handles, handle);
    if (physical == NULL || physical->references == 0)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    physical->references--;
    drop_if_unused(physical);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct mapping *mapping = range_at(&driver.mapped, (CUdeviceptr)(uintptr_t)address);
    if (handle == NULL || mapping == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    mapping->physical->references++;
    *handle = mapping->physical->handle.base;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                CUmemGenericAllocationHandle handle)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    const struct physical *physical = range_at(&driver.handles, handle);
    if (prop == NULL || physical == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *prop = physical->prop;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (granularity == NULL || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
                                option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *granularity = GRANULARITY;
    return driver_leave(check_prop(prop));
}

static CUresult reserve(CUdeviceptr *pointer, size_t bytes, size_t alignment)
{
    struct range *range = calloc(1, sizeof *range);
    void *memory = range == NULL ? NULL : addresses_take(bytes, alignment, false);
    if (memory == NULL) {
        free(range);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *range = (struct range){(CUdeviceptr)(uintptr_t)memory, bytes};
    if (!range_insert(&driver.reserved, range)) {
        addresses_give_back(range->base, bytes);
        free(range);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pointer = range->base;
    return CUDA_SUCCESS;
}

/* `address` is a wish, which the real driver may pass over too. */
CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t bytes, size_t alignment,
                             CUdeviceptr address, unsigned long long flags)
{
    (void)address;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (pointer == NULL || bytes == 0 || !whole(bytes) || (alignment & (alignment - 1)) != 0 ||
        flags != 0)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    return driver_leave(reserve(pointer, bytes, alignment > GRANULARITY ? alignment : GRANULARITY));
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct range *range = range_at(&driver.reserved, pointer);
    if (range == NULL || range->base != pointer || range->size != bytes ||
        range_overlapping(&driver.mapped, pointer, bytes) != NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    range_remove(&driver.reserved, range);
    addresses_give_back(pointer, bytes);
    free(range);
    return driver_leave(CUDA_SUCCESS);
}

static bool is_reserved(CUdeviceptr pointer, size_t bytes)
{
    const struct range *range = range_at(&driver.reserved, pointer);
    return range != NULL && bytes <= range->size - (size_t)(pointer - range->base);
}

static CUresult map(CUdeviceptr pointer, size_t bytes, struct physical *physical)
{
    struct mapping *mapping = calloc(1, sizeof *mapping);
    if (mapping == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *mapping = (struct mapping){.range = {pointer, bytes}, .physical = physical};
    if (!range_insert(&driver.mapped, &mapping->range)) {
        free(mapping);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->mappings++;
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct physical *physical = range_at(&driver.handles, handle);
    if (physical == NULL || physical->references == 0 || bytes == 0 || !whole(bytes) ||
        !whole(pointer) || offset != 0 || flags != 0 || bytes > physical->bytes ||
        !is_reserved(pointer, bytes))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (range_overlapping(&driver.mapped, pointer, bytes) != NULL)
        return driver_leave(CUDA_ERROR_ALREADY_MAPPED);
    return driver_leave(map(pointer, bytes, physical));
}

/* True when whole mappings, one behind the other, fill the range. */
static bool is_filled(CUdeviceptr pointer, size_t bytes)
{
    while (bytes > 0) {
        const struct mapping *mapping = range_at(&driver.mapped, pointer);
        if (mapping == NULL || mapping->range.base != pointer || mapping->range.size > bytes)
            return false;
        pointer += mapping->range.size;
        bytes -= mapping->range.size;
    }
    return true;
}

static void unmap(struct mapping *mapping)
{
    /* Drops the pages and keeps the addresses. */
    mmap((void *)(uintptr_t)mapping->range.base, mapping->range.size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    range_remove(&driver.mapped, &mapping->range);
    mapping->physical->mappings--;
    drop_if_unused(mapping->physical);
    free(mapping);
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes == 0 || !is_filled(pointer, bytes))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    struct mapping *mapping;
    while ((mapping = range_overlapping(&driver.mapped, pointer, bytes)) != NULL)
        unmap(mapping);
    return driver_leave(CUDA_SUCCESS);
}

static CUresult set_access(CUdeviceptr pointer, size_t bytes, CUmemAccess_flags flags)
{
    int protection = flags == CU_MEM_ACCESS_FLAGS_PROT_NONE   ? PROT_NONE
                     : flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ
                                                              : PROT_READ | PROT_WRITE;
    if (mprotect((void *)(uintptr_t)pointer, bytes, protection) != 0)
        return CUDA_ERROR_MAP_FAILED;
    for (CUdeviceptr next = pointer; next < pointer + bytes;) {
        struct mapping *mapping = range_at(&driver.mapped, next);
        mapping->accessible = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        next += mapping->range.size;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *desc,
                        size_t count)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (desc == NULL || count == 0 || bytes == 0 || !is_filled(pointer, bytes))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    for (size_t i = 0; i < count; i++) {
        if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !is_device(desc[i].location.id))
            return driver_leave(CUDA_ERROR_INVALID_VALUE);
        flags |= desc[i].flags;
    }
    return driver_leave(set_access(pointer, bytes, flags));
}
