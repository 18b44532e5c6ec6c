/* A driver whose calls do nothing, so that what a hook adds to a launch can be seen. */
#include <string.h>

#include "cuda_api.h"

static int context, event;

CUresult cuInit(unsigned int flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }

CUresult cuDeviceGetCount(int *count) {
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    memset(uuid->bytes, 0, sizeof uuid->bytes);
    uuid->bytes[15] = (unsigned char)(device + 1);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *current) {
    *current = (CUcontext)&context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext pushed) { return pushed ? CUDA_SUCCESS : 1; }

CUresult cuCtxPopCurrent_v2(CUcontext *popped) { return cuCtxGetCurrent(popped); }

CUresult cuEventCreate(CUevent *made, unsigned int flags) {
    *made = flags ? NULL : (CUevent)&event;
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent recorded, CUstream stream) {
    return recorded && !stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventQuery(CUevent asked) { return asked ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    *milliseconds = 0;
    return start && end ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **params, void **extra) {
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared_bytes, (void)stream, (void)params, (void)extra;
    return CUDA_SUCCESS;
}
