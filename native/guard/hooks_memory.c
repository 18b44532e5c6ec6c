/* Memory of a context: reserve, allocate, remember; on a free forget first, since the driver may
 * give the address to another thread before we are back. */
#include "drivers.h"
#include "handles.h"
#include "keep_errno.h"
#include "membership.h"
#include "placement.h"

enum { ROW_ALIGNMENT = 512 /* bytes; what drivers round the rows of a pitched block up to */ };

struct request {
    CUcontext context;
    struct charge charge;
};

static CUresult reserve(uint64_t bytes, struct request *request) {
    *request = (struct request){0};
    enum stance stance = membership_join();
    if (stance == REFUSING) return CUDA_ERROR_NOT_INITIALIZED;
    const struct card *card = stance == GUARDED ? placement_of_thread(&request->context) : NULL;
    if (!card) return CUDA_SUCCESS;
    return account_reserve(card, ASKED, bytes, &request->charge) ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_OUT_OF_MEMORY;
}

/* False: there is no memory to remember the block; it must not stay. */
static bool remember(struct request *request, CUdeviceptr pointer) {
    struct handle stale;
    struct handle handle = {.kind = MEMORY, .key = pointer, .owner = request->context,
                            .charge = request->charge};
    if (!request->charge.bytes) return true;
    if (!handles_add(&handle, &stale)) return false;
    if (stale.kind != NO_HANDLE) account_return(&stale.charge);
    return true;
}

static void free_block(CUdeviceptr pointer) {
    __typeof__(&cuMemFree_v2) real =
        (__typeof__(&cuMemFree_v2))driver_entry(ENTRY_cuMemFree_v2);
    if (real) real(pointer);
}

/* After the driver's answer: keep the charge with the block, or give it back. */
static CUresult settle(CUresult result, struct request *request, const CUdeviceptr *pointer) {
    if (result == CUDA_SUCCESS && remember(request, *pointer)) return result;
    if (result == CUDA_SUCCESS) {
        free_block(*pointer);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    account_return(&request->charge);
    return result;
}

EXPORTED CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemAlloc_v2);
    struct request request;
    CUresult refusal = reserve(bytes, &request);
    return refusal ? refusal : settle(real(pointer, bytes), &request, pointer);
}

EXPORTED CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemAlloc);
    struct request request;
    CUresult refusal = reserve(bytes, &request);
    if (refusal) return refusal;
    CUresult result = real(pointer, bytes);
    CUdeviceptr wide = result == CUDA_SUCCESS ? *pointer : 0;
    return settle(result, &request, &wide);
}

EXPORTED CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemAllocManaged);
    struct request request;
    CUresult refusal = reserve(bytes, &request);
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
        CUresult refusal = reserve(times(pitch, block->height), &request);
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

/* What was remembered of a block, taken out before the driver frees it. */
static struct handle forget(CUdeviceptr pointer) {
    struct handle block = {.kind = NO_HANDLE};
    handles_take(MEMORY, pointer, &block);
    return block;
}

/* After the driver's answer: give the charge back, or remember the block again. */
static CUresult settle_free(CUresult result, struct handle *block) {
    struct handle stale;
    if (block->kind == NO_HANDLE) return result;
    if (result == CUDA_SUCCESS)
        account_return(&block->charge);
    else
        handles_add(block, &stale);
    return result;
}

EXPORTED CUresult cuMemFree_v2(CUdeviceptr pointer) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemFree_v2);
    struct handle block = forget(pointer);
    return settle_free(real(pointer), &block);
}

EXPORTED CUresult cuMemFree(CUdeviceptr_v1 pointer) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemFree);
    struct handle block = forget(pointer);
    return settle_free(real(pointer), &block);
}
