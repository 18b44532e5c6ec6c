/* Graphs as they are built: sets of nodes, graphs, and adding a node of any type. */
#include "cuda_graphs.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_blocks.h"
#include "cuda_launch.h"

bool node_set_add(struct node_set *to, const CUgraphNode *nodes, size_t count)
{
    if (count == 0)
        return true;
    CUgraphNode *grown = realloc(to->nodes, (to->count + count) * sizeof *grown);
    if (grown == NULL)
        return false;
    to->nodes = grown;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < to->count && to->nodes[k] != nodes[i])
            k++;
        to->nodes[k] = nodes[i];
        to->count += k == to->count;
    }
    return true;
}

void node_set_clear(struct node_set *set)
{
    free(set->nodes);
    *set = (struct node_set){NULL, 0};
}

bool node_set_copy(struct node_set *to, const CUgraphNode *nodes, size_t count)
{
    struct node_set made = {NULL, 0};
    if (!node_set_add(&made, nodes, count))
        return false;
    free(to->nodes);
    *to = made;
    return true;
}

CUgraph graph_make(void)
{
    return calloc(1, sizeof(struct CUgraph_st));
}

static void node_free(CUgraphNode node)
{
    if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
        graph_free(node->params.graph);
    if (node->block != NULL)
        block_drop(node->block);
    node_set_clear(&node->after);
    free(node);
}

void graph_free(CUgraph graph)
{
    while (graph->first != NULL) {
        CUgraphNode node = graph->first;
        graph->first = node->next;
        node_free(node);
    }
    free(graph);
}

static CUresult copy_nodes(CUgraph to, CUgraph from)
{
    CUgraphNode *made = calloc(from->count + 1, sizeof *made);
    CUgraphNode *after = calloc(from->count + 1, sizeof *after);
    CUresult result = made == NULL || after == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    for (CUgraphNode node = from->first; node != NULL && result == CUDA_SUCCESS;
         node = node->next) {
        CUgraphNodeParams params = node->params;
        if (params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            result = CUDA_ERROR_NOT_SUPPORTED; /* such graphs cannot be cloned */
        for (size_t i = 0; i < node->after.count; i++)
            after[i] = made[node->after.nodes[i]->number];
        if (result == CUDA_SUCCESS)
            result = node_add(&made[node->number], to, after, node->after.count, &params);
        if (result == CUDA_SUCCESS)
            made[node->number]->work_ns = node->work_ns; /* arguments may be gone by now */
    }
    free(made);
    free(after);
    return result;
}

static CUresult clone(CUgraph *to, CUgraph from)
{
    CUgraph made = graph_make();
    CUresult result = made == NULL ? CUDA_ERROR_OUT_OF_MEMORY : copy_nodes(made, from);
    if (result == CUDA_SUCCESS)
        *to = made;
    else if (made != NULL)
        graph_free(made);
    return result;
}

static CUresult prepare_kernel(CUgraphNode node, CUgraphNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS_v1 *kernel = &params->kernel.v1;
    if (kernel->func == NULL)
        kernel->func = params->kernel.kern;
    const CUlaunchConfig config = {
        kernel->gridDimX, kernel->gridDimY, kernel->gridDimZ, kernel->blockDimX,
        kernel->blockDimY, kernel->blockDimZ, kernel->sharedMemBytes, NULL, NULL, 0};
    CUresult result = launch_check(&config, kernel->func, NULL);
    if (result == CUDA_SUCCESS)
        node->work_ns = launch_work_ns(kernel->func, kernel->kernelParams, kernel->extra);
    return result;
}

static CUresult prepare_alloc(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
    if (alloc->bytesize == 0 || alloc->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        alloc->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(alloc->poolProps.location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    unsigned card = driver.cards[alloc->poolProps.location.id];
    CUresult result = block_make_graph(&node->block, alloc->bytesize, card);
    if (result == CUDA_SUCCESS)
        alloc->dptr = node->block->range.base;
    return result;
}

static CUresult prepare_free(CUgraphNode node, CUdeviceptr pointer)
{
    node->block = block_at(pointer);
    if (node->block == NULL || node->block->kind != BLOCK_GRAPH)
        return CUDA_ERROR_INVALID_VALUE;
    node->block->holders++;
    return CUDA_SUCCESS;
}

/* What one type needs checked or made, before the node is a part of the graph. */
static CUresult prepare(CUgraphNode node, CUgraphNodeParams *params)
{
    CUgraph child;
    CUresult result = CUDA_SUCCESS;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return prepare_kernel(node, params);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return prepare_alloc(node, &params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return prepare_free(node, params->freed);
    case CU_GRAPH_NODE_TYPE_HOST:
        return params->host.fn != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return params->event != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        if (params->graph == NULL || params->graph == node->graph)
            return CUDA_ERROR_INVALID_VALUE;
        result = clone(&child, params->graph);
        if (result == CUDA_SUCCESS)
            params->graph = child;
        return result;
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET: return CUDA_SUCCESS;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static void append(CUgraph graph, CUgraphNode node)
{
    node->number = graph->count++;
    if (graph->last != NULL)
        graph->last->next = node;
    else
        graph->first = node;
    graph->last = node;
}

CUresult node_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                  CUgraphNodeParams *params)
{
    for (size_t i = 0; i < count; i++)
        if (after == NULL || after[i] == NULL || after[i]->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode made = calloc(1, sizeof *made);
    if (made == NULL || !node_set_copy(&made->after, after, count)) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->graph = graph;
    CUresult result = prepare(made, params);
    if (result != CUDA_SUCCESS) {
        node_set_clear(&made->after);
        free(made);
        return result;
    }
    made->params = *params;
    append(graph, made);
    *node = made;
    return CUDA_SUCCESS;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (graph == NULL || flags != 0)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *graph = graph_make();
    return driver_leave(*graph == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph graph)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (graph == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    graph_free(graph);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphClone(CUgraph *to, CUgraph graph)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    return driver_leave(to == NULL || graph == NULL ? CUDA_ERROR_INVALID_VALUE : clone(to, graph));
}
