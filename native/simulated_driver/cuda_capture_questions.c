/* What a program asks of a capture, and the one thing it may change in it. */
#include "cuda_capture.h"
#include "cuda_graphs.h"

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **dependencies, size_t *count)
{
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (status == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    const struct capture *capture = stream->capture;
    *status = capture == NULL     ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    bool active = *status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (id != NULL && active)
        *id = capture->id;
    if (graph != NULL && active)
        *graph = capture->graph;
    if (dependencies != NULL && active)
        *dependencies = stream->after.nodes;
    if (count != NULL && active)
        *count = stream->after.count;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return cuStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **dependencies,
                                   const CUgraphEdgeData **edges, size_t *count)
{
    if (edges != NULL)
        *edges = NULL; /* all edges are plain ones */
    return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    return cuStreamGetCaptureInfo(stream, status, NULL);
}

CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus *status,
                                     cuuint64_t *id)
{
    return cuStreamGetCaptureInfo(per_thread(stream), status, id);
}

CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus *status,
                                        cuuint64_t *id, CUgraph *graph,
                                        const CUgraphNode **dependencies, size_t *count)
{
    return cuStreamGetCaptureInfo_v2(per_thread(stream), status, id, graph, dependencies, count);
}

CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus *status,
                                        cuuint64_t *id, CUgraph *graph,
                                        const CUgraphNode **dependencies,
                                        const CUgraphEdgeData **edges, size_t *count)
{
    return cuStreamGetCaptureInfo_v3(per_thread(stream), status, id, graph, dependencies, edges,
                                     count);
}

CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *status)
{
    return cuStreamIsCapturing(per_thread(stream), status);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *dependencies,
                                           size_t count, unsigned int flags)
{
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture == NULL)
        return driver_leave(CUDA_ERROR_ILLEGAL_STATE);
    bool good = flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES
                    ? node_set_copy(&stream->after, dependencies, count)
                    : node_set_add(&stream->after, dependencies, count);
    return driver_leave(good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *dependencies,
                                              const CUgraphEdgeData *edges, size_t count,
                                              unsigned int flags)
{
    (void)edges;
    return cuStreamUpdateCaptureDependencies(stream, dependencies, count, flags);
}

CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream stream, CUgraphNode *dependencies,
                                                size_t count, unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies(per_thread(stream), dependencies, count, flags);
}

CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream stream, CUgraphNode *dependencies,
                                                   const CUgraphEdgeData *edges, size_t count,
                                                   unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies_v2(per_thread(stream), dependencies, edges, count,
                                                flags);
}
