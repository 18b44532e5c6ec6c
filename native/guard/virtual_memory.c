/* Physical memory lives as long as a handle or a mapping holds it, so only the last of them gives
 * its charge back. */
#include "virtual_memory.h"

#include <stdlib.h>

#include "drivers.h"
#include "handles.h"
#include "keep_errno.h"
#include "lock.h"
#include "membership.h"
#include "reservation.h"
#include "sharing.h"

enum { FABRIC_HANDLE = 8, FABRIC_HANDLE_BYTES = 64 };

struct physical {
    unsigned int holds; /* references of handles, and mappings */
    const struct card *card;
    struct charge charge;
    bool foreign;      /* of another process, on our account: its size is learnt as it is mapped */
    uint64_t exported; /* identity of the handle that others may open it by; 0: none */
    int file;          /* that handle, if it is a descriptor, else -1 */
    struct keep keep;  /* it is on the account of another process of the budget */
};

/* Guards holds and the PHYSICAL and MAPPING handles; never held across a driver call. */
static struct lock lock;

void virtual_memory_after_fork(void) { lock_reset(&lock); }

static void forget(struct physical *memory) {
    account_return(&memory->charge);
    free(memory);
}

static void let_go(struct physical *memory, uint64_t holds) {
    memory->holds -= (unsigned int)holds;
    if (memory->holds) return;
    sharing_let_go(&memory->keep);
    if (memory->exported) {
        sharing_withdraw(memory->card, memory->exported);
        sharing_return(memory->card, &memory->charge, memory->file, memory->exported);
    }
    forget(memory);
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

static CUresult card_of(const CUmemAllocationProp *prop, const struct card **card) {
    bool on_device = prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (on_device) return reservation_card_on(prop->location.id, card);
    *card = NULL;
    return membership_join() == REFUSING ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

/* A handle that the driver gave out, with the first hold. */
static void keep_handle(CUmemGenericAllocationHandle handle, struct physical *memory) {
    memory->holds = 1;
    lock_take(&lock);
    add(PHYSICAL, handle, memory, 1);
    lock_release(&lock);
}

EXPORTED CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                              const CUmemAllocationProp *prop, unsigned long long flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemCreate);
    const struct card *card;
    CUresult result = card_of(prop, &card);
    if (result != CUDA_SUCCESS) return result;
    if (!card) return real(handle, bytes, prop, flags);
    struct physical *memory = calloc(1, sizeof *memory);
    if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
    memory->card = card;
    result = reservation_from(card, KIND_VIRTUAL, bytes, &memory->charge);
    if (result == CUDA_SUCCESS) result = real(handle, bytes, prop, flags);
    if (result == CUDA_SUCCESS)
        keep_handle(*handle, memory);
    else
        forget(memory);
    return result;
}

/* What a shareable handle is known by; 0: it cannot be told from others. */
static uint64_t identity_of(CUmemAllocationHandleType type, const void *shareable) {
    if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return sharing_identity_of_file((int)(intptr_t)shareable);
    return (int)type == FABRIC_HANDLE ? sharing_identity(shareable, FABRIC_HANDLE_BYTES) : 0;
}

EXPORTED CUresult cuMemExportToShareableHandle(void *shareable,
                                               CUmemGenericAllocationHandle handle,
                                               CUmemAllocationHandleType type,
                                               unsigned long long flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemExportToShareableHandle);
    CUresult result = real(shareable, handle, type, flags);
    if (result != CUDA_SUCCESS) return result;
    bool by_file = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    uint64_t identity =
        identity_of(type, by_file ? (void *)(intptr_t)*(int *)shareable : shareable);
    struct physical *memory = identity ? hold(handles_find, PHYSICAL, handle) : NULL;
    if (!memory) return result;
    if (memory->card && !memory->foreign) {
        memory->exported = identity;
        memory->file = by_file ? *(int *)shareable : -1;
        sharing_export(memory->card, identity);
    }
    let_go_locked(memory);
    return result;
}

/* The driver does not tell how much it is. */
EXPORTED CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                 void *shareable,
                                                 CUmemAllocationHandleType type) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemImportFromShareableHandle);
    __typeof__(&cuMemGetAllocationPropertiesFromHandle) prop_of =
        (__typeof__(&cuMemGetAllocationPropertiesFromHandle))driver_entry(
            ENTRY_cuMemGetAllocationPropertiesFromHandle);
    CUmemAllocationProp prop = {.location = {CU_MEM_LOCATION_TYPE_INVALID, 0}};
    const struct card *card;
    CUresult result = real(handle, shareable, type);
    if (result != CUDA_SUCCESS || !prop_of || prop_of(&prop, *handle) != CUDA_SUCCESS ||
        card_of(&prop, &card) != CUDA_SUCCESS || !card)
        return result;
    struct physical *memory = calloc(1, sizeof *memory);
    if (!memory) return result;
    memory->card = card;
    memory->foreign = !sharing_keep(card, identity_of(type, shareable), &memory->keep);
    keep_handle(*handle, memory);
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

/* Charges memory of another budget as far as it was ever mapped here. */
static CUresult learn_size(struct physical *memory, uint64_t bytes) {
    struct charge more;
    lock_take(&lock);
    uint64_t known = memory->charge.bytes;
    lock_release(&lock);
    if (!memory->foreign || bytes <= known) return CUDA_SUCCESS;
    CUresult refusal = reservation_from(memory->card, KIND_IMPORT, bytes - known, &more);
    if (refusal) return refusal;
    lock_take(&lock);
    bool changed = memory->charge.bytes != known;
    bool joined = !changed && account_join(&memory->charge, &more);
    lock_release(&lock);
    if (joined) return CUDA_SUCCESS;
    account_return(&more);
    return changed ? learn_size(memory, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORTED CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                           CUmemGenericAllocationHandle handle, unsigned long long flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemMap);
    struct physical *memory = hold(handles_find, PHYSICAL, handle);
    CUresult result = memory ? learn_size(memory, (uint64_t)offset + bytes) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) result = real(pointer, bytes, offset, handle, flags);
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

/* Parts of sparse arrays are mapped and unmapped in any shape, in the order of a stream. Memory
 * that was ever mapped there stays charged until the process ends: too much, never too little. */
static CUresult map_arrays(cuMemMapArrayAsync_fn *real, CUarrayMapInfo *list, unsigned int count,
                           CUstream stream) {
    CUresult result = real(list, count, stream);
    for (unsigned int i = 0; result == CUDA_SUCCESS && list && i < count; i++)
        if (list[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP)
            hold(handles_find, PHYSICAL, list[i].memHandle);
    return result;
}

EXPORTED CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream stream) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemMapArrayAsync);
    return map_arrays(real, list, count, stream);
}

EXPORTED CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned int count,
                                          CUstream stream) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemMapArrayAsync_ptsz);
    return map_arrays(real, list, count, stream);
}
