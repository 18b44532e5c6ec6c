/* Memory of a context by pointer. */
#include "blocks.h"
#include "drivers.h"
#include "imports.h"
#include "keep_errno.h"
#include "pools.h"
#include "reservation.h"

enum { ROW_ALIGNMENT = 512 /* bytes; what drivers round the rows of a pitched block up to */ };

struct request {
    CUcontext context;
    struct charge charge;
};

static CUresult reserve(unsigned int kind, uint64_t bytes, struct request *request) {
    return reservation_here(kind, bytes, &request->context, &request->charge);
}

static void free_block(uint64_t pointer) {
    __typeof__(&cuMemFree_v2) real =
        (__typeof__(&cuMemFree_v2))driver_entry(ENTRY_cuMemFree_v2);
    if (real) real(pointer);
}

static CUresult settle(CUresult result, struct request *request, const CUdeviceptr *pointer) {
    uint64_t key = result == CUDA_SUCCESS ? *pointer : 0;
    return blocks_settle(result, MEMORY, key, request->context, &request->charge, free_block);
}

EXPORTED CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemAlloc_v2);
    struct request request;
    CUresult refusal = reserve(KIND_DEVICE, bytes, &request);
    return refusal ? refusal : settle(real(pointer, bytes), &request, pointer);
}

EXPORTED CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemAlloc);
    struct request request;
    CUresult refusal = reserve(KIND_DEVICE, bytes, &request);
    if (refusal) return refusal;
    CUresult result = real(pointer, bytes);
    CUdeviceptr wide = result == CUDA_SUCCESS ? *pointer : 0;
    return settle(result, &request, &wide);
}

EXPORTED CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemAllocManaged);
    struct request request;
    CUresult refusal = reserve(KIND_MANAGED, bytes, &request);
    return refusal ? refusal : settle(real(pointer, bytes, flags), &request, pointer);
}

static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t round_row(uint64_t bytes) {
    if (bytes > UINT64_MAX - ROW_ALIGNMENT) return UINT64_MAX;
    return (bytes + ROW_ALIGNMENT - 1) & -(uint64_t)ROW_ALIGNMENT;
}

/* Both forms of cuMemAllocPitch, in wide types. */
struct pitched {
    CUdeviceptr pointer;
    size_t pitch, width_bytes, height;
    unsigned int element_bytes;
};

/* Reserves for the pitch that is expected, and again for the real one where a driver pads more. */
static CUresult allocate_pitched(CUresult (*allocate)(struct pitched *), struct pitched *block) {
    for (uint64_t pitch = round_row(block->width_bytes);; pitch = block->pitch) {
        struct request request;
        CUresult refusal = reserve(KIND_DEVICE, times(pitch, block->height), &request);
        if (refusal) return refusal;
        CUresult result = allocate(block);
        if (result != CUDA_SUCCESS || block->pitch <= pitch) {
            if (result == CUDA_SUCCESS && request.charge.bytes)
                account_shrink(&request.charge, times(block->pitch, block->height));
            return settle(result, &request, &block->pointer);
        }
        free_block(block->pointer);
        account_return(&request.charge);
    }
}

static CUresult allocate_v1(struct pitched *block) {
    __typeof__(&cuMemAllocPitch) real =
        (__typeof__(&cuMemAllocPitch))driver_entry(ENTRY_cuMemAllocPitch);
    CUdeviceptr_v1 pointer = 0;
    unsigned int pitch = 0;
    CUresult result = real(&pointer, &pitch, (unsigned int)block->width_bytes,
                           (unsigned int)block->height, block->element_bytes);
    block->pointer = pointer;
    block->pitch = pitch;
    return result;
}

static CUresult allocate_v2(struct pitched *block) {
    __typeof__(&cuMemAllocPitch_v2) real =
        (__typeof__(&cuMemAllocPitch_v2))driver_entry(ENTRY_cuMemAllocPitch_v2);
    return real(&block->pointer, &block->pitch, block->width_bytes, block->height,
                block->element_bytes);
}

EXPORTED CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned int *pitch,
                                  unsigned int width_bytes, unsigned int height,
                                  unsigned int element_bytes) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemAllocPitch);
    if (!pointer || !pitch) return real(pointer, pitch, width_bytes, height, element_bytes);
    struct pitched block = {.width_bytes = width_bytes, .height = height,
                            .element_bytes = element_bytes};
    CUresult result = allocate_pitched(allocate_v1, &block);
    if (result != CUDA_SUCCESS) return result;
    *pointer = (CUdeviceptr_v1)block.pointer;
    *pitch = (unsigned int)block.pitch;
    return result;
}

EXPORTED CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width_bytes,
                                     size_t height, unsigned int element_bytes) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemAllocPitch_v2);
    if (!pointer || !pitch) return real(pointer, pitch, width_bytes, height, element_bytes);
    struct pitched block = {.width_bytes = width_bytes, .height = height,
                            .element_bytes = element_bytes};
    CUresult result = allocate_pitched(allocate_v2, &block);
    if (result != CUDA_SUCCESS) return result;
    *pointer = block.pointer;
    *pitch = block.pitch;
    return result;
}

/* A pool's block may be freed this way, too, also one of another process. */
static CUresult free_other(CUdeviceptr pointer, CUresult (*free)(CUdeviceptr)) {
    struct charge none = {0};
    const struct pooled pooled = pools_forget(pointer);
    struct opened *opened = pooled.pool ? NULL : imports_forget(pointer);
    CUresult result = free(pointer);
    if (result == CUDA_SUCCESS) imports_withdraw(pointer, &none);
    imports_settle_free(result, pointer, opened);
    pools_settle_free(result, &pooled);
    return result;
}

static CUresult free_any(CUdeviceptr pointer, CUresult (*free)(CUdeviceptr)) {
    struct handle block = blocks_forget(MEMORY, pointer);
    if (block.kind == NO_HANDLE) return free_other(pointer, free);
    CUresult result = free(pointer);
    if (result == CUDA_SUCCESS) imports_withdraw(pointer, &block.charge);
    return blocks_settle_free(result, &block);
}

static CUresult free_v1(CUdeviceptr pointer) {
    __typeof__(&cuMemFree) real = (__typeof__(&cuMemFree))driver_entry(ENTRY_cuMemFree);
    return real ? real((CUdeviceptr_v1)pointer) : driver_absent_cuda();
}

EXPORTED CUresult cuMemFree_v2(CUdeviceptr pointer) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemFree_v2);
    return free_any(pointer, real);
}

EXPORTED CUresult cuMemFree(CUdeviceptr_v1 pointer) {
    KEEP_ERRNO;
    return free_any(pointer, free_v1);
}
