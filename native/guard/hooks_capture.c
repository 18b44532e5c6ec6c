/* Captures, and the ends of what launches are known by. */
#include "drivers.h"
#include "keep_errno.h"
#include "metering.h"

/* Counted before the driver begins, so that no launch of another thread is measured meanwhile. */
#define BEGIN(name, parameters, arguments)                           \
    EXPORTED CUresult name parameters {                              \
        KEEP_ERRNO;                                                  \
        REAL_CUDA(name);                                             \
        metering_count_capture(1);                                   \
        CUresult result = real arguments;                            \
        if (result != CUDA_SUCCESS) metering_count_capture(-1);      \
        return result;                                               \
    }

#define TO_GRAPH_PARAMETERS                                                   \
    (CUstream stream, CUgraph graph, const CUgraphNode *dependencies,         \
     const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
#define TO_GRAPH_ARGUMENTS (stream, graph, dependencies, edges, count, mode)

BEGIN(cuStreamBeginCapture, (CUstream stream), (stream))
BEGIN(cuStreamBeginCapture_ptsz, (CUstream stream), (stream))
BEGIN(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
BEGIN(cuStreamBeginCapture_v2_ptsz, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
BEGIN(cuStreamBeginCaptureToGraph, TO_GRAPH_PARAMETERS, TO_GRAPH_ARGUMENTS)
BEGIN(cuStreamBeginCaptureToGraph_ptsz, TO_GRAPH_PARAMETERS, TO_GRAPH_ARGUMENTS)

/* A capture that was invalidated ends here too, with an error. */
static bool has_ended(CUresult result) {
    return result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
           result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

EXPORTED CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    KEEP_ERRNO;
    REAL_CUDA(cuStreamEndCapture);
    CUresult result = real(stream, graph);
    if (has_ended(result)) metering_count_capture(-1);
    return result;
}

EXPORTED CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) {
    KEEP_ERRNO;
    REAL_CUDA(cuStreamEndCapture_ptsz);
    CUresult result = real(stream, graph);
    if (has_ended(result)) metering_count_capture(-1);
    return result;
}

EXPORTED CUresult cuModuleUnload(CUmodule module) {
    KEEP_ERRNO;
    REAL_CUDA(cuModuleUnload);
    metering_forget_functions();
    return real(module);
}
