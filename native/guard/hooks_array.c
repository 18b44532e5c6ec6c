/* Arrays, which the driver lays out as it likes: charged by their elements. */
#include "blocks.h"
#include "drivers.h"
#include "keep_errno.h"
#include "reservation.h"

/* Memory comes apart, by cuMemCreate, and is charged there. */
enum { WITHOUT_MEMORY = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING };

static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t at_least_one(uint64_t extent) { return extent ? extent : 1; }

/* Bytes of one channel of an element. Formats that are not known here are of video and compressed
 * ones, of which four bytes an element are the most. */
static uint64_t channel_bytes(CUarray_format format) {
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    default: return 4;
    }
}

/* All levels of an array; each has half the extents of the one before. Layers are not halved. */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels) {
    uint64_t element = times(channel_bytes(shape->Format), at_least_one(shape->NumChannels));
    uint64_t width = shape->Width, height = shape->Height, depth = shape->Depth, sum = 0;
    for (unsigned int level = 0; level < levels; level++) {
        uint64_t rows = times(at_least_one(height), at_least_one(depth));
        uint64_t bytes = times(times(element, at_least_one(width)), rows);
        sum = sum + bytes < sum ? UINT64_MAX : sum + bytes;
        if (width <= 1 && height <= 1 && (depth <= 1 || (shape->Flags & CUDA_ARRAY3D_LAYERED)))
            break;
        width /= 2;
        height /= 2;
        if (!(shape->Flags & CUDA_ARRAY3D_LAYERED)) depth /= 2;
    }
    return sum;
}

struct request {
    CUcontext context;
    struct charge charge;
};

static CUresult reserve(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels,
                        struct request *request) {
    uint64_t bytes = shape->Flags & WITHOUT_MEMORY ? 0 : array_bytes(shape, levels);
    return reservation_here(KIND_ARRAY, bytes, &request->context, &request->charge);
}

static void destroy_array(uint64_t key) {
    __typeof__(&cuArrayDestroy) real =
        (__typeof__(&cuArrayDestroy))driver_entry(ENTRY_cuArrayDestroy);
    if (real) real((CUarray)(uintptr_t)key);
}

static void destroy_mipmapped(uint64_t key) {
    __typeof__(&cuMipmappedArrayDestroy) real =
        (__typeof__(&cuMipmappedArrayDestroy))driver_entry(ENTRY_cuMipmappedArrayDestroy);
    if (real) real((CUmipmappedArray)(uintptr_t)key);
}

static CUresult settle(CUresult result, struct request *request, const void *array,
                       void (*undo)(uint64_t)) {
    return blocks_settle(result, ARRAY, (uint64_t)(uintptr_t)array, request->context,
                         &request->charge, undo);
}

static CUresult settle_array(CUresult result, struct request *request, CUarray *array) {
    return settle(result, request, result == CUDA_SUCCESS ? *array : NULL, destroy_array);
}

EXPORTED CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor) {
    KEEP_ERRNO;
    REAL_CUDA(cuArrayCreate);
    struct request request;
    if (!array || !descriptor) return real(array, descriptor);
    const CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = descriptor->Width, .Height = descriptor->Height, .Format = descriptor->Format,
        .NumChannels = descriptor->NumChannels};
    CUresult refusal = reserve(&shape, 1, &request);
    return refusal ? refusal : settle_array(real(array, descriptor), &request, array);
}

EXPORTED CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor) {
    KEEP_ERRNO;
    REAL_CUDA(cuArrayCreate_v2);
    struct request request;
    if (!array || !descriptor) return real(array, descriptor);
    const CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = descriptor->Width, .Height = descriptor->Height, .Format = descriptor->Format,
        .NumChannels = descriptor->NumChannels};
    CUresult refusal = reserve(&shape, 1, &request);
    return refusal ? refusal : settle_array(real(array, descriptor), &request, array);
}

EXPORTED CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor) {
    KEEP_ERRNO;
    REAL_CUDA(cuArray3DCreate);
    struct request request;
    if (!array || !descriptor) return real(array, descriptor);
    const CUDA_ARRAY3D_DESCRIPTOR shape = {
        descriptor->Width, descriptor->Height, descriptor->Depth,
        descriptor->Format, descriptor->NumChannels, descriptor->Flags};
    CUresult refusal = reserve(&shape, 1, &request);
    return refusal ? refusal : settle_array(real(array, descriptor), &request, array);
}

EXPORTED CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    KEEP_ERRNO;
    REAL_CUDA(cuArray3DCreate_v2);
    struct request request;
    if (!array || !descriptor) return real(array, descriptor);
    CUresult refusal = reserve(descriptor, 1, &request);
    return refusal ? refusal : settle_array(real(array, descriptor), &request, array);
}

EXPORTED CUresult cuMipmappedArrayCreate(CUmipmappedArray *array,
                                         const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                         unsigned int levels) {
    KEEP_ERRNO;
    REAL_CUDA(cuMipmappedArrayCreate);
    struct request request;
    if (!array || !descriptor) return real(array, descriptor, levels);
    CUresult refusal = reserve(descriptor, levels, &request);
    if (refusal) return refusal;
    CUresult result = real(array, descriptor, levels);
    return settle(result, &request, result == CUDA_SUCCESS ? *array : NULL, destroy_mipmapped);
}

EXPORTED CUresult cuArrayDestroy(CUarray array) {
    KEEP_ERRNO;
    REAL_CUDA(cuArrayDestroy);
    struct handle block = blocks_forget(ARRAY, (uint64_t)(uintptr_t)array);
    return blocks_settle_free(real(array), &block);
}

EXPORTED CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
    KEEP_ERRNO;
    REAL_CUDA(cuMipmappedArrayDestroy);
    struct handle block = blocks_forget(ARRAY, (uint64_t)(uintptr_t)array);
    return blocks_settle_free(real(array), &block);
}
