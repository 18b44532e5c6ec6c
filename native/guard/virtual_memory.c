/* Physical memory lives as long as a handle or a mapping holds it, so only the last of them gives
 * its charge back. */
#include "virtual_memory.h"

#include <stdlib.h>

#include "drivers.h"
#include "handles.h"
#include "keep_errno.h"
#include "lock.h"
#include "membership.h"
#include "placement.h"

struct physical {
    unsigned int holds; /* references of handles, and mappings */
    struct charge charge;
};

/* Guards holds and the PHYSICAL and MAPPING handles; never held across a driver call. */
static struct lock lock;

void virtual_memory_after_fork(void) { lock_reset(&lock); }

static void let_go(struct physical *memory, uint64_t holds) {
    memory->holds -= (unsigned int)holds;
    if (memory->holds) return;
    account_return(&memory->charge);
    free(memory);
}

static void let_go_locked(struct physical *memory) {
    lock_take(&lock);
    let_go(memory, 1);
    lock_release(&lock);
}

/* Adds a handle. What the driver gave out before under the same key is gone, with its holds. Where
 * there is no memory for it the hold stays: too much is charged then, never too little. */
static void add(enum handle_kind kind, uint64_t key, struct physical *memory, uint64_t span) {
    struct handle stale;
    struct handle handle = {.kind = (uint8_t)kind, .key = key, .owner = memory, .span = span};
    if (!handles_add(&handle, &stale) || stale.kind == NO_HANDLE) return;
    let_go(stale.owner, kind == PHYSICAL ? stale.span : 1);
}

static void add_reference(uint64_t key, struct physical *memory) {
    struct handle handle;
    bool known = handles_take(PHYSICAL, key, &handle) && handle.owner == memory;
    add(PHYSICAL, key, memory, known ? handle.span + 1 : 1);
}

/* Takes one reference off a handle, whose hold the caller then has. */
static struct physical *take_reference(uint64_t key) {
    struct handle handle;
    lock_take(&lock);
    bool known = handles_take(PHYSICAL, key, &handle);
    if (known && handle.span > 1) add(PHYSICAL, key, handle.owner, handle.span - 1);
    lock_release(&lock);
    return known ? handle.owner : NULL;
}

/* The memory that `found` leads to, with one more hold. */
static struct physical *hold(bool (*find)(enum handle_kind, uint64_t, struct handle *),
                             enum handle_kind kind, uint64_t key) {
    struct handle handle;
    struct physical *memory = NULL;
    lock_take(&lock);
    if (find(kind, key, &handle)) {
        memory = handle.owner;
        memory->holds++;
    }
    lock_release(&lock);
    return memory;
}

static CUresult reserve(const CUmemAllocationProp *prop, size_t bytes, struct charge *charge) {
    *charge = (struct charge){0};
    enum stance stance = membership_join();
    if (stance == REFUSING) return CUDA_ERROR_NOT_INITIALIZED;
    bool on_device = prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    const struct card *card =
        stance == GUARDED && on_device ? placement_of_device(prop->location.id) : NULL;
    if (!card || account_reserve(card, ASKED, bytes, charge)) return CUDA_SUCCESS;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORTED CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                              const CUmemAllocationProp *prop, unsigned long long flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemCreate);
    struct charge charge;
    CUresult refusal = reserve(prop, bytes, &charge);
    if (refusal) return refusal;
    struct physical *memory = charge.bytes ? malloc(sizeof *memory) : NULL;
    CUresult result = charge.bytes && !memory ? CUDA_ERROR_OUT_OF_MEMORY
                                              : real(handle, bytes, prop, flags);
    if (result != CUDA_SUCCESS) {
        account_return(&charge);
        free(memory);
    } else if (memory) {
        *memory = (struct physical){.holds = 1, .charge = charge};
        lock_take(&lock);
        add(PHYSICAL, *handle, memory, 1);
        lock_release(&lock);
    }
    return result;
}

EXPORTED CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemRelease);
    struct physical *memory = take_reference(handle);
    CUresult result = real(handle);
    if (!memory) return result;
    lock_take(&lock);
    if (result == CUDA_SUCCESS)
        let_go(memory, 1);
    else
        add_reference(handle, memory);
    lock_release(&lock);
    return result;
}

EXPORTED CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle,
                                              void *address) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemRetainAllocationHandle);
    struct physical *memory =
        hold(handles_find_covering, MAPPING, (uint64_t)(uintptr_t)address);
    CUresult result = real(handle, address);
    if (!memory) return result;
    lock_take(&lock);
    if (result == CUDA_SUCCESS)
        add_reference(*handle, memory);
    else
        let_go(memory, 1);
    lock_release(&lock);
    return result;
}

EXPORTED CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                           CUmemGenericAllocationHandle handle, unsigned long long flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemMap);
    struct physical *memory = hold(handles_find, PHYSICAL, handle);
    CUresult result = real(pointer, bytes, offset, handle, flags);
    if (memory && result == CUDA_SUCCESS) {
        lock_take(&lock);
        add(MAPPING, pointer, memory, bytes);
        lock_release(&lock);
    } else if (memory) {
        let_go_locked(memory);
    }
    return result;
}

/* Takes a mapping that begins in the range. Most calls undo one, which begins where they do. */
static bool take_mapping(CUdeviceptr pointer, size_t bytes, struct handle *mapping) {
    if (handles_take(MAPPING, pointer, mapping)) return true;
    return handles_find_within(MAPPING, pointer, bytes, mapping) &&
           handles_take(MAPPING, mapping->key, mapping);
}

/* The program chooses the addresses and may not use them again before this returns, so here the
 * driver comes first. One call may undo several mappings that lie side by side, also of memory
 * that has no limit. */
EXPORTED CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemUnmap);
    CUresult result = real(pointer, bytes);
    if (result != CUDA_SUCCESS) return result;
    struct handle mapping;
    lock_take(&lock);
    for (size_t done = 0; done < bytes && take_mapping(pointer + done, bytes - done, &mapping);) {
        let_go(mapping.owner, 1);
        done = mapping.key - pointer + mapping.span;
    }
    lock_release(&lock);
    return result;
}
