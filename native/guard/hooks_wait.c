/* Waiting for a stream lets a pool go back to its release threshold: then less is charged. */
#include "drivers.h"
#include "keep_errno.h"
#include "pools.h"

static CUresult settle(CUresult result) {
    if (result == CUDA_SUCCESS) pools_settle();
    return result;
}

EXPORTED CUresult cuCtxSynchronize(void) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxSynchronize);
    return settle(real());
}

EXPORTED CUresult cuCtxSynchronize_v2(CUcontext context) {
    KEEP_ERRNO;
    REAL_CUDA(cuCtxSynchronize_v2);
    return settle(real(context));
}

EXPORTED CUresult cuStreamSynchronize(CUstream stream) {
    KEEP_ERRNO;
    REAL_CUDA(cuStreamSynchronize);
    return settle(real(stream));
}

EXPORTED CUresult cuStreamSynchronize_ptsz(CUstream stream) {
    KEEP_ERRNO;
    REAL_CUDA(cuStreamSynchronize_ptsz);
    return settle(real(stream));
}

EXPORTED CUresult cuEventSynchronize(CUevent event) {
    KEEP_ERRNO;
    REAL_CUDA(cuEventSynchronize);
    return settle(real(event));
}
