#include <stdatomic.h>
#include <stdlib.h>

#include "blocks.h"
#include "drivers.h"
#include "imports.h"
#include "keep_errno.h"
#include "lock.h"
#include "reservation.h"
#include "sharing.h"

/* One open piece of memory: on another's account, or on ours. */
struct opened {
    unsigned int times; /* it was opened and not closed yet */
    struct keep keep;
    struct charge charge;
};

/* Guards `times`, and that an OPENED handle and its record come and go together. */
static struct lock lock;
static atomic_uint opened_count, exported_count;

void imports_after_fork(void) {
    lock_reset(&lock);
    atomic_store(&opened_count, 0);
    atomic_store(&exported_count, 0);
}

static void let_go(struct opened *opened) {
    sharing_let_go(&opened->keep);
    account_return(&opened->charge);
    free(opened);
}

/* Memory that is open here already is counted once; called with the lock. */
static bool count_again(CUdeviceptr pointer) {
    struct handle known;
    if (!handles_find(OPENED, pointer, &known)) return false;
    ((struct opened *)known.owner)->times++;
    return true;
}

static bool is_open_already(CUdeviceptr pointer) {
    lock_take(&lock);
    bool again = count_again(pointer);
    lock_release(&lock);
    return again;
}

static bool remember(CUdeviceptr pointer, struct opened *opened) {
    struct handle handle = {.kind = OPENED, .key = pointer, .owner = opened}, stale;
    lock_take(&lock);
    bool again = count_again(pointer);
    bool added = again || handles_add(&handle, &stale);
    lock_release(&lock);
    if (again) let_go(opened); /* another thread was faster */
    if (added && !again) atomic_fetch_add(&opened_count, 1);
    return added;
}

struct opened *imports_forget(CUdeviceptr pointer) {
    struct handle handle;
    struct opened *last = NULL;
    if (!atomic_load_explicit(&opened_count, memory_order_relaxed)) return NULL;
    lock_take(&lock);
    if (handles_find(OPENED, pointer, &handle)) {
        struct opened *opened = handle.owner;
        if (--opened->times == 0 && handles_take(OPENED, pointer, &handle)) last = opened;
    }
    lock_release(&lock);
    if (last) atomic_fetch_sub(&opened_count, 1);
    return last;
}

void imports_settle_free(CUresult result, CUdeviceptr pointer, struct opened *opened) {
    if (!opened) return;
    if (result == CUDA_SUCCESS) {
        let_go(opened);
    } else {
        opened->times = 1;
        if (!remember(pointer, opened)) return; /* stays charged */
    }
}

static uint64_t size_of(CUdeviceptr pointer) {
    __typeof__(&cuMemGetAddressRange_v2) ask =
        (__typeof__(&cuMemGetAddressRange_v2))driver_entry(ENTRY_cuMemGetAddressRange_v2);
    CUdeviceptr base;
    size_t bytes = 0;
    return ask && ask(&base, &bytes, pointer) == CUDA_SUCCESS ? bytes : 0;
}

/* Opens memory that another process has allocated. Its size is only told by the open memory, which
 * takes nothing more of the card. */
static CUresult open_memory(uint64_t identity, CUresult (*call)(void *), void *arguments,
                            CUdeviceptr *pointer, CUresult (*undo)(CUdeviceptr)) {
    const struct card *card;
    CUcontext context;
    CUresult result = reservation_card_here(&context, &card);
    if (result != CUDA_SUCCESS) return result;
    if (!card) return call(arguments);
    struct opened *opened = calloc(1, sizeof *opened);
    if (!opened) return CUDA_ERROR_OUT_OF_MEMORY;
    opened->times = 1;
    bool others = sharing_keep(card, identity, &opened->keep);
    result = call(arguments);
    if (result != CUDA_SUCCESS || is_open_already(*pointer)) {
        let_go(opened);
        return result;
    }
    if (!others) result = reservation_from(card, KIND_IMPORT, size_of(*pointer), &opened->charge);
    if (result == CUDA_SUCCESS && !remember(*pointer, opened)) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) return result;
    undo(*pointer);
    let_go(opened);
    return result;
}

struct ipc_open {
    cuIpcOpenMemHandle_fn *real;
    CUdeviceptr *pointer;
    CUipcMemHandle handle;
    unsigned int flags;
};

static CUresult call_ipc_open(void *arguments) {
    const struct ipc_open *open = arguments;
    return open->real(open->pointer, open->handle, open->flags);
}

static CUresult close_ipc(CUdeviceptr pointer) {
    __typeof__(&cuIpcCloseMemHandle) real =
        (__typeof__(&cuIpcCloseMemHandle))driver_entry(ENTRY_cuIpcCloseMemHandle);
    return real ? real(pointer) : driver_absent_cuda();
}

static CUresult open_ipc(struct ipc_open *open) {
    if (!open->pointer) return call_ipc_open(open);
    return open_memory(sharing_identity(&open->handle, sizeof open->handle), call_ipc_open, open,
                       open->pointer, close_ipc);
}

EXPORTED CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle,
                                     unsigned int flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuIpcOpenMemHandle);
    return open_ipc(&(struct ipc_open){real, pointer, handle, flags});
}

EXPORTED CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle,
                                        unsigned int flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuIpcOpenMemHandle_v2);
    return open_ipc(&(struct ipc_open){real, pointer, handle, flags});
}

EXPORTED CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
    KEEP_ERRNO;
    REAL_CUDA(cuIpcCloseMemHandle);
    struct opened *opened = imports_forget(pointer);
    CUresult result = real(pointer);
    imports_settle_free(result, pointer, opened);
    return result;
}

struct pool_open {
    cuMemPoolImportPointer_fn *real;
    CUdeviceptr *pointer;
    CUmemoryPool pool;
    CUmemPoolPtrExportData *shared;
};

static CUresult call_pool_open(void *arguments) {
    const struct pool_open *open = arguments;
    return open->real(open->pointer, open->pool, open->shared);
}

static CUresult free_imported(CUdeviceptr pointer) {
    __typeof__(&cuMemFree_v2) real =
        (__typeof__(&cuMemFree_v2))driver_entry(ENTRY_cuMemFree_v2);
    return real ? real(pointer) : driver_absent_cuda();
}

EXPORTED CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool,
                                         CUmemPoolPtrExportData *shared) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemPoolImportPointer);
    struct pool_open open = {real, pointer, pool, shared};
    if (!pointer || !shared) return call_pool_open(&open);
    return open_memory(sharing_identity(shared, sizeof *shared), call_pool_open, &open, pointer,
                       free_imported);
}

/* Leaves a word for others of the budget, and remembers which, for the block's end. */
static void export_block(CUdeviceptr pointer, uint64_t identity) {
    const struct card *card;
    struct handle stale;
    CUcontext context;
    if (reservation_card_here(&context, &card) != CUDA_SUCCESS || !card) return;
    const struct handle handle = {.kind = EXPORTED_BLOCK, .key = pointer, .span = identity,
                                  .owner = (void *)(uintptr_t)card};
    if (!handles_add(&handle, &stale)) return;
    if (stale.kind == NO_HANDLE)
        atomic_fetch_add(&exported_count, 1);
    else if (stale.span != identity)
        sharing_withdraw(stale.owner, stale.span);
    sharing_export(card, identity);
}

void imports_withdraw(CUdeviceptr pointer, struct charge *charge) {
    struct handle handle;
    if (!atomic_load_explicit(&exported_count, memory_order_relaxed) ||
        !handles_take(EXPORTED_BLOCK, pointer, &handle))
        return;
    atomic_fetch_sub(&exported_count, 1);
    sharing_withdraw(handle.owner, handle.span);
    sharing_return(handle.owner, charge, -1, 0);
}

EXPORTED CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
    KEEP_ERRNO;
    REAL_CUDA(cuIpcGetMemHandle);
    CUresult result = real(handle, pointer);
    if (result == CUDA_SUCCESS) export_block(pointer, sharing_identity(handle, sizeof *handle));
    return result;
}

EXPORTED CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shared, CUdeviceptr pointer) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemPoolExportPointer);
    CUresult result = real(shared, pointer);
    if (result == CUDA_SUCCESS) export_block(pointer, sharing_identity(shared, sizeof *shared));
    return result;
}

static void destroy_external(uint64_t key) {
    __typeof__(&cuDestroyExternalMemory) real =
        (__typeof__(&cuDestroyExternalMemory))driver_entry(ENTRY_cuDestroyExternalMemory);
    if (real) real((CUexternalMemory)(uintptr_t)key);
}

/* Memory of a graphics interface, which nobody else has charged. */
EXPORTED CUresult cuImportExternalMemory(CUexternalMemory *memory,
                                         const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *descriptor) {
    KEEP_ERRNO;
    REAL_CUDA(cuImportExternalMemory);
    struct charge charge;
    CUcontext context;
    if (!memory || !descriptor) return real(memory, descriptor);
    CUresult refusal = reservation_here(KIND_IMPORT, descriptor->size, &context, &charge);
    if (refusal) return refusal;
    CUresult result = real(memory, descriptor);
    uint64_t key = result == CUDA_SUCCESS ? (uint64_t)(uintptr_t)*memory : 0;
    return blocks_settle(result, EXTERNAL, key, NULL, &charge, destroy_external);
}

EXPORTED CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
    KEEP_ERRNO;
    REAL_CUDA(cuDestroyExternalMemory);
    struct handle block = blocks_forget(EXTERNAL, (uint64_t)(uintptr_t)memory);
    return blocks_settle_free(real(memory), &block);
}
