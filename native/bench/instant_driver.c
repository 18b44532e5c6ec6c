/* A driver whose memory calls answer at once, for measuring what the guard adds to them: behind the
 * virtual card's system calls the processor's caches and predictions are those of the kernel, and
 * the same code takes three times as long. One device with the UUID of tests/native/guard. */
#include <string.h>

#include "cuda_api.h"

#define SHOWN __attribute__((visibility("default")))

static struct CUctx_st {
    char unused;
} context;

static CUdeviceptr last_freed, next = 1 << 20;

SHOWN CUresult cuInit(unsigned int flags) {
    (void)flags;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuCtxCreate_v2(CUcontext *made, unsigned int flags, CUdevice device) {
    (void)flags;
    (void)device;
    *made = &context;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuCtxGetCurrent(CUcontext *current) {
    *current = &context;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuCtxGetDevice(CUdevice *device) {
    *device = 0;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    static const CUuuid card = {{[12] = 0xc0, [13] = 0xff, [14] = 0xee}};
    (void)device;
    memcpy(uuid, &card, sizeof card);
    return CUDA_SUCCESS;
}

SHOWN CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    *pointer = last_freed ? last_freed : (next += bytes);
    last_freed = 0;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuMemFree_v2(CUdeviceptr pointer) {
    last_freed = pointer;
    return CUDA_SUCCESS;
}

SHOWN CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    *free_bytes = *total_bytes = (size_t)1 << 36;
    return CUDA_SUCCESS;
}
