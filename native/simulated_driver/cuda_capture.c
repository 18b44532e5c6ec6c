/* The life of a capture: begun at one stream, spread over others by events, ended where it
 * began. */
#include "cuda_capture.h"

#include <stdlib.h>

#include "cuda_graphs.h"

static struct capture *captures;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult capture_check(CUstream stream)
{
    if (stream->capture != NULL) {
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (!stream->legacy)
        return CUDA_SUCCESS;
    for (struct capture *capture = captures; capture != NULL; capture = capture->next)
        if (capture->origin->resource.context == stream->resource.context &&
            !(capture->origin->flags & CU_STREAM_NON_BLOCKING)) {
            capture->invalid = true;
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    return CUDA_SUCCESS;
}

CUresult capture_check_context(CUcontext context)
{
    CUresult result = CUDA_SUCCESS;
    for (struct capture *capture = captures; capture != NULL; capture = capture->next)
        if (capture->origin->resource.context == context) {
            capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return result;
}

static bool forbids(const struct capture *capture)
{
    bool own = pthread_equal(capture->thread, pthread_self());
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    if (own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        return true;
    return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_check_unsafe(void)
{
    CUresult result = CUDA_SUCCESS;
    for (struct capture *capture = captures; capture != NULL; capture = capture->next)
        if (forbids(capture)) {
            capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return result;
}

CUresult capture_node(CUstream stream, CUgraphNodeParams *params)
{
    CUgraphNode node;
    struct capture *capture = stream->capture;
    if (capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUresult result =
        node_add(&node, capture->graph, stream->after.nodes, stream->after.count, params);
    if (result != CUDA_SUCCESS)
        return result;
    return node_set_copy(&stream->after, &node, 1) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult capture_kernel(CUstream stream, const CUlaunchConfig *config, CUfunction function,
                        void **params, void **extra)
{
    CUgraphNodeParams node = {
        .type = CU_GRAPH_NODE_TYPE_KERNEL,
        .kernel.v1 = {function, config->gridDimX, config->gridDimY, config->gridDimZ,
                      config->blockDimX, config->blockDimY, config->blockDimZ,
                      config->sharedMemBytes, params, extra}};
    return capture_node(stream, &node);
}

CUresult capture_host_function(CUstream stream, CUhostFn function, void *argument)
{
    CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {function, argument}};
    return capture_node(stream, &node);
}

CUresult capture_record(CUstream stream, CUevent event)
{
    if (stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->capture = stream->capture;
    return node_set_copy(&event->after, stream->after.nodes, stream->after.count)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult capture_wait(CUstream stream, CUevent event)
{
    if (event->capture == NULL) { /* the graph cannot wait for what came before it */
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (event->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (stream->capture != NULL && stream->capture != event->capture) {
        stream->capture->invalid = event->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    stream->capture = event->capture;
    return node_set_add(&stream->after, event->after.nodes, event->after.count)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

void capture_forget_event(CUevent event)
{
    node_set_clear(&event->after);
    event->capture = NULL;
}

static CUresult begin(CUstream stream, CUgraph graph, const CUgraphNode *after, size_t count,
                      CUstreamCaptureMode mode)
{
    static cuuint64_t last_id;
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (stream->legacy)
        return driver_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (stream->capture != NULL)
        return driver_leave(CUDA_ERROR_ILLEGAL_STATE);
    struct capture *capture = calloc(1, sizeof *capture);
    CUgraph used = graph != NULL || capture == NULL ? graph : graph_make();
    if (used == NULL || capture == NULL || !node_set_copy(&stream->after, after, count)) {
        free(capture);
        return driver_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    *capture = (struct capture){.next = captures, .origin = stream, .graph = used,
                                .given_graph = graph != NULL, .mode = mode,
                                .thread = pthread_self(), .id = ++last_id};
    captures = stream->capture = capture;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuStreamBeginCapture(CUstream stream)
{
    return begin(stream, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    return begin(stream, NULL, NULL, 0, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                     const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *edges, size_t count,
                                     CUstreamCaptureMode mode)
{
    (void)edges;
    return graph == NULL ? CUDA_ERROR_INVALID_VALUE
                         : begin(stream, graph, dependencies, count, mode);
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream)
{
    return cuStreamBeginCapture(per_thread(stream));
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
    return cuStreamBeginCapture_v2(per_thread(stream), mode);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                          const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *edges, size_t count,
                                          CUstreamCaptureMode mode)
{
    return cuStreamBeginCaptureToGraph(per_thread(stream), graph, dependencies, edges, count, mode);
}

/* The nodes that come before the origin's next one get the mark; false without memory. */
static bool mark_joined(const struct capture *capture)
{
    size_t depth = capture->origin->after.count;
    CUgraphNode *stack = malloc((capture->graph->count + depth + 1) * sizeof *stack);
    if (stack == NULL)
        return false;
    for (CUgraphNode node = capture->graph->first; node != NULL; node = node->next)
        node->mark = false;
    for (size_t i = 0; i < depth; i++) {
        stack[i] = capture->origin->after.nodes[i];
        stack[i]->mark = true;
    }
    while (depth > 0) {
        const struct node_set *before = &stack[--depth]->after;
        for (size_t i = 0; i < before->count; i++)
            if (!before->nodes[i]->mark) {
                before->nodes[i]->mark = true;
                stack[depth++] = before->nodes[i];
            }
    }
    free(stack);
    return true;
}

static bool is_joined(CUstream stream)
{
    for (size_t i = 0; i < stream->after.count; i++)
        if (!stream->after.nodes[i]->mark)
            return false;
    return true;
}

static void leave(struct resource *resource, struct capture *capture)
{
    if (resource->kind == RESOURCE_EVENT && ((CUevent)resource)->capture == capture)
        capture_forget_event((CUevent)resource);
    if (resource->kind == RESOURCE_STREAM && ((CUstream)resource)->capture == capture) {
        node_set_clear(&((CUstream)resource)->after);
        ((CUstream)resource)->capture = NULL;
    }
}

/* Ends the capture for all that took part in it; its graph, if it was good to the end. */
static CUresult finish(struct capture *capture, CUgraph *graph)
{
    CUresult result = capture->invalid         ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                      : mark_joined(capture) ? CUDA_SUCCESS
                                             : CUDA_ERROR_OUT_OF_MEMORY;
    for (CUcontext context = driver.contexts; context != NULL; context = context->next)
        for (struct resource *resource = context->resources; resource != NULL;
             resource = resource->next)
            if (resource->kind == RESOURCE_STREAM && ((CUstream)resource)->capture == capture &&
                result == CUDA_SUCCESS && !is_joined((CUstream)resource))
                result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    for (CUcontext context = driver.contexts; context != NULL; context = context->next)
        for (struct resource *resource = context->resources; resource != NULL;
             resource = resource->next)
            leave(resource, capture);
    struct capture **link = &captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    if (result != CUDA_SUCCESS && !capture->given_graph)
        graph_free(capture->graph);
    *graph = result == CUDA_SUCCESS ? capture->graph : NULL;
    free(capture);
    return result;
}

void capture_forget(CUstream stream)
{
    CUgraph graph;
    struct capture *capture = stream->capture;
    if (capture == NULL)
        return;
    capture->invalid = true;
    if (capture->origin == stream)
        finish(capture, &graph);
    node_set_clear(&stream->after);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct capture *capture = stream->capture;
    if (graph == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *graph = NULL;
    if (capture == NULL)
        return driver_leave(CUDA_ERROR_ILLEGAL_STATE);
    if (capture->origin != stream)
        return driver_leave(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(capture->thread, pthread_self()))
        return driver_leave(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    return driver_leave(finish(capture, graph));
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
    return cuStreamEndCapture(per_thread(stream), graph);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    if (mode == NULL || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
