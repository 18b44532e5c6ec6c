#include "graph_memory.h"

#include <stdlib.h>

#include "drivers.h"
#include "handles.h"
#include "keep_errno.h"
#include "pools.h"
#include "metering.h"
#include "reservation.h"

enum { GRAIN = 2 << 20 /* bytes; what drivers round a memory node up to */, DEEPEST = 16 };
static const uint64_t MORE_THAN_ANY_CARD = (uint64_t)1 << 48;

atomic_uint graph_memory_known;

/* What the memory nodes of a graph and its child graphs ask for together. The driver may let nodes
 * share memory; it never needs more. */
static uint64_t graph_bytes(CUgraph graph, int depth);

static uint64_t node_bytes(CUgraphNode node, int depth) {
    __typeof__(&cuGraphNodeGetType) type_of =
        (__typeof__(&cuGraphNodeGetType))driver_entry(ENTRY_cuGraphNodeGetType);
    __typeof__(&cuGraphMemAllocNodeGetParams) params_of =
        (__typeof__(&cuGraphMemAllocNodeGetParams))driver_entry(ENTRY_cuGraphMemAllocNodeGetParams);
    __typeof__(&cuGraphChildGraphNodeGetGraph) child_of =
        (__typeof__(&cuGraphChildGraphNodeGetGraph))driver_entry(
            ENTRY_cuGraphChildGraphNodeGetGraph);
    CUDA_MEM_ALLOC_NODE_PARAMS params = {0};
    CUgraphNodeType type;
    CUgraph child;
    if (!type_of || type_of(node, &type) != CUDA_SUCCESS) return 0;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH && child_of && child_of(node, &child) == CUDA_SUCCESS)
        return graph_bytes(child, depth + 1);
    if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || !params_of ||
        params_of(node, &params) != CUDA_SUCCESS ||
        params.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return 0;
    return (params.bytesize + GRAIN - 1) & -(uint64_t)GRAIN;
}

static uint64_t graph_bytes(CUgraph graph, int depth) {
    __typeof__(&cuGraphGetNodes) nodes_of =
        (__typeof__(&cuGraphGetNodes))driver_entry(ENTRY_cuGraphGetNodes);
    size_t count = 0;
    if (depth > DEEPEST || !nodes_of || nodes_of(graph, NULL, &count) != CUDA_SUCCESS || !count)
        return 0;
    CUgraphNode *nodes = calloc(count, sizeof *nodes);
    uint64_t bytes = nodes ? 0 : MORE_THAN_ANY_CARD;
    if (nodes && nodes_of(graph, nodes, &count) == CUDA_SUCCESS)
        for (size_t i = 0; i < count; i++) bytes += node_bytes(nodes[i], depth);
    free(nodes);
    return bytes;
}

static void remember(const struct handle *exec) {
    struct handle stale;
    if (handles_add(exec, &stale) && stale.kind == NO_HANDLE)
        atomic_fetch_add(&graph_memory_known, 1);
}

static void remember_exec(CUgraphExec exec, uint64_t bytes) {
    const struct handle handle = {.kind = EXEC, .key = (uint64_t)(uintptr_t)exec, .span = bytes};
    if (bytes) remember(&handle);
}

static uint64_t ask(CUdevice device, CUgraphMem_attribute attribute) {
    __typeof__(&cuDeviceGetGraphMemAttribute) real =
        (__typeof__(&cuDeviceGetGraphMemAttribute))driver_entry(ENTRY_cuDeviceGetGraphMemAttribute);
    uint64_t bytes = 0;
    return real && real(device, attribute, &bytes) == CUDA_SUCCESS ? bytes : 0;
}

/* Whether graphs have so much of the card that they do not use: then it does not grow. */
static bool has_room(CUdevice device, uint64_t bytes) {
    uint64_t used = ask(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
    uint64_t reserved = ask(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
    return reserved >= used && reserved - used >= bytes;
}

static CUresult launch_backed(cuGraphLaunch_fn *real, CUgraphExec exec, CUstream stream,
                              struct pool *pool, uint64_t bytes) {
    CUresult result = pools_begin(pool, bytes);
    if (result != CUDA_SUCCESS) return result;
    result = real(exec, stream);
    pools_end(pool, bytes);
    return result;
}

CUresult graph_memory_back(cuGraphLaunch_fn *real, CUgraphExec exec, CUstream stream) {
    KEEP_ERRNO;
    const struct card *card;
    struct handle handle;
    CUdevice device;
    if (!handles_find(EXEC, (uint64_t)(uintptr_t)exec, &handle)) return real(exec, stream);
    CUresult result = reservation_card_of_stream(stream, &device, &card);
    if (result != CUDA_SUCCESS) return result;
    if (!card || has_room(device, handle.span)) return real(exec, stream);
    struct pool *pool = pools_hold(NULL, device, card);
    if (!pool) return CUDA_ERROR_OUT_OF_MEMORY;
    result = launch_backed(real, exec, stream, pool, handle.span);
    pools_release(pool);
    return result;
}

static void forget(CUgraphExec exec) {
    struct handle handle;
    if (atomic_load_explicit(&graph_memory_known, memory_order_relaxed) &&
        handles_take(EXEC, (uint64_t)(uintptr_t)exec, &handle))
        atomic_fetch_sub(&graph_memory_known, 1);
}

EXPORTED CUresult cuGraphExecDestroy(CUgraphExec exec) {
    KEEP_ERRNO;
    REAL_CUDA(cuGraphExecDestroy);
    metering_forget_graph(exec);
    forget(exec);
    return real(exec);
}

EXPORTED CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
                                     char *log, size_t log_bytes) {
    KEEP_ERRNO;
    REAL_CUDA(cuGraphInstantiate);
    CUresult result = real(exec, graph, error_node, log, log_bytes);
    if (result == CUDA_SUCCESS) remember_exec(*exec, graph_bytes(graph, 0));
    return result;
}

EXPORTED CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
                                        char *log, size_t log_bytes) {
    KEEP_ERRNO;
    REAL_CUDA(cuGraphInstantiate_v2);
    CUresult result = real(exec, graph, error_node, log, log_bytes);
    if (result == CUDA_SUCCESS) remember_exec(*exec, graph_bytes(graph, 0));
    return result;
}

EXPORTED CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                              unsigned long long flags) {
    KEEP_ERRNO;
    REAL_CUDA(cuGraphInstantiateWithFlags);
    CUresult result = real(exec, graph, flags);
    if (result == CUDA_SUCCESS) remember_exec(*exec, graph_bytes(graph, 0));
    return result;
}

/* A wish for an upload is taken out and done as one, so that its memory is reserved first. */
static CUresult instantiate(cuGraphInstantiateWithParams_fn *real, cuGraphUpload_fn *real_upload,
                            CUgraphExec *exec, CUgraph graph,
                            CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    uint64_t bytes = graph_bytes(graph, 0);
    uint64_t wish = params ? params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD : 0;
    if (!bytes || !wish || !real_upload) {
        CUresult result = real(exec, graph, params);
        if (result == CUDA_SUCCESS) remember_exec(*exec, bytes);
        return result;
    }
    params->flags &= ~wish;
    CUresult result = real(exec, graph, params);
    params->flags |= wish;
    if (result != CUDA_SUCCESS) return result;
    remember_exec(*exec, bytes);
    result = graph_memory_back(real_upload, *exec, params->hUploadStream);
    if (result != CUDA_SUCCESS) cuGraphExecDestroy(*exec);
    return result;
}

EXPORTED CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                               CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    KEEP_ERRNO;
    REAL_CUDA(cuGraphInstantiateWithParams);
    __typeof__(&cuGraphUpload) real_upload =
        (__typeof__(&cuGraphUpload))driver_entry(ENTRY_cuGraphUpload);
    return instantiate(real, real_upload, exec, graph, params);
}

EXPORTED CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                                    CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    KEEP_ERRNO;
    REAL_CUDA(cuGraphInstantiateWithParams_ptsz);
    __typeof__(&cuGraphUpload) real_upload =
        (__typeof__(&cuGraphUpload))driver_entry(ENTRY_cuGraphUpload_ptsz);
    return instantiate(real, real_upload, exec, graph, params);
}

EXPORTED CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
    KEEP_ERRNO;
    REAL_CUDA(cuGraphUpload);
    return graph_memory_launch(real, exec, stream);
}

EXPORTED CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
    KEEP_ERRNO;
    REAL_CUDA(cuGraphUpload_ptsz);
    return graph_memory_launch(real, exec, stream);
}
