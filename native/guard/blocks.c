#include "blocks.h"

static bool remember(enum handle_kind kind, uint64_t key, void *owner,
                     const struct charge *charge) {
    struct handle stale;
    const struct handle handle = {
        .kind = (uint8_t)kind, .key = key, .owner = owner, .span = 1, .charge = *charge};
    if (!charge->bytes) return true;
    if (!handles_add(&handle, &stale)) return false;
    if (stale.kind != NO_HANDLE) account_return(&stale.charge);
    return true;
}

CUresult blocks_settle(CUresult result, enum handle_kind kind, uint64_t key, void *owner,
                       struct charge *charge, void (*undo)(uint64_t key)) {
    if (result == CUDA_SUCCESS && remember(kind, key, owner, charge)) return result;
    if (result == CUDA_SUCCESS) {
        undo(key);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    account_return(charge);
    return result;
}

struct handle blocks_forget(enum handle_kind kind, uint64_t key) {
    struct handle block = {.kind = NO_HANDLE};
    handles_take(kind, key, &block);
    return block;
}

CUresult blocks_settle_free(CUresult result, struct handle *block) {
    struct handle stale;
    if (block->kind == NO_HANDLE) return result;
    if (result == CUDA_SUCCESS)
        account_return(&block->charge);
    else
        handles_add(block, &stale);
    return result;
}
