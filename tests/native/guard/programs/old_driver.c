/* The least of an old libcuda.so.1: few names, and cuGetProcAddress hands out functions that are
 * not the exported ones. */
#include <string.h>

#include "cuda_api.h"

static CUresult internal_alloc(CUdeviceptr *pointer, size_t bytes) {
    *pointer = 4096;
    return bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuInit(unsigned int flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    return internal_alloc(pointer, bytes);
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
    return pointer == 4096 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    *context = (CUcontext)8;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    memset(uuid, 0, sizeof *uuid);
    uuid->bytes[15] = (unsigned char)(device + 1);
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    int known = strcmp(symbol, "cuMemAlloc") == 0 && version >= 3020 && flags == 0;
    *pfn = known ? (void *)(uintptr_t)internal_alloc : NULL;
    if (status) *status = known ? 0 : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return known ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
