/* Graphs as they run: an executable graph is a copy, flat, of what its graph was. */
#include <stdlib.h>

#include "cuda_blocks.h"
#include "cuda_capture.h"
#include "cuda_graphs.h"
#include "cuda_launch.h"

struct item {
    CUgraphNode node; /* of the graph, only compared */
    uint64_t work_ns;
    struct block *block; /* of memory nodes, held */
    bool was_allocated;  /* before the launch that is going on */
    CUgraphNodeParams params;
};

struct CUgraphExec_st {
    struct item *items;
    size_t count;
    cuuint64_t flags;
};

static size_t count_items(CUgraph graph)
{
    size_t count = graph->count;
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
            count += count_items(node->params.graph);
    return count;
}

static struct item *flatten(struct item *item, CUgraph graph)
{
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        *item++ = (struct item){.node = node, .work_ns = node->work_ns, .block = node->block,
                                .params = node->params};
        if (node->block != NULL)
            node->block->holders++;
        if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
            item = flatten(item, node->params.graph);
    }
    return item;
}

static void drop_items(CUgraphExec exec)
{
    for (struct item *item = exec->items; item < exec->items + exec->count; item++)
        if (item->block != NULL)
            block_drop(item->block);
    free(exec->items);
}

static CUresult fill(CUgraphExec exec, CUgraph graph)
{
    size_t count = count_items(graph);
    struct item *items = calloc(count + 1, sizeof *items);
    if (items == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    flatten(items, graph);
    drop_items(exec);
    exec->items = items;
    exec->count = count;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (exec == NULL || graph == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    CUgraphExec made = calloc(1, sizeof *made);
    result = made == NULL ? CUDA_ERROR_OUT_OF_MEMORY : fill(made, graph);
    if (result != CUDA_SUCCESS) {
        free(made);
        return driver_leave(result);
    }
    made->flags = flags;
    *exec = made;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
                               char *log, size_t log_bytes)
{
    if (error_node != NULL)
        *error_node = NULL;
    if (log != NULL && log_bytes > 0)
        log[0] = '\0';
    return cuGraphInstantiateWithFlags(exec, graph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                            size_t log_bytes)
{
    return cuGraphInstantiate_v2(exec, graph, error_node, log, log_bytes);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuGraphInstantiateWithFlags(exec, graph, params->flags);
    params->hErrNode_out = NULL;
    params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                                                : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return cuGraphInstantiateWithParams(exec, graph, params);
}

struct need {
    unsigned card;
    int64_t bytes, peak;
};

/* Carries out the memory nodes in their order: what is needed on the way, and what is left. All
 * memory of a graph is taken to be on one card. */
static struct need run_memory_nodes(CUgraphExec exec)
{
    struct need need = {0, 0, 0};
    for (struct item *item = exec->items; item < exec->items + exec->count; item++) {
        if (item->block == NULL)
            continue;
        bool allocates = item->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        item->was_allocated = item->block->allocated;
        if (item->block->allocated != allocates)
            need.bytes += (allocates ? 1 : -1) * (int64_t)item->block->range.size;
        item->block->allocated = allocates;
        need.card = item->block->card;
        if (need.bytes > need.peak)
            need.peak = need.bytes;
    }
    return need;
}

static void undo_memory_nodes(CUgraphExec exec)
{
    for (struct item *item = exec->items + exec->count; item-- > exec->items;)
        if (item->block != NULL)
            item->block->allocated = item->was_allocated;
}

static CUresult take_memory(CUgraphExec exec)
{
    struct need need = run_memory_nodes(exec);
    if (need.peak == 0 && need.bytes == 0)
        return CUDA_SUCCESS;
    CUresult result = graph_memory_use(need.card, (uint64_t)need.peak, need.bytes);
    if (result != CUDA_SUCCESS)
        undo_memory_nodes(exec);
    return result;
}

static void run_host_node(void *function, void *argument)
{
    ((CUhostFn)(uintptr_t)function)(argument);
}

/* The work is one piece for each stretch between nodes that something has to know the end of. */
static CUresult run(CUgraphExec exec, CUstream stream)
{
    uint64_t work_ns = 0;
    CUresult result = CUDA_SUCCESS;
    for (const struct item *item = exec->items; item < exec->items + exec->count; item++) {
        work_ns += item->work_ns;
        bool host = item->params.type == CU_GRAPH_NODE_TYPE_HOST;
        if (!host && item->params.type != CU_GRAPH_NODE_TYPE_EVENT_RECORD)
            continue;
        result = stream_submit(stream, work_ns);
        work_ns = 0;
        if (result == CUDA_SUCCESS && host)
            result = callback_queue(stream, run_host_node,
                                    (void *)(uintptr_t)item->params.host.fn,
                                    item->params.host.userData);
        else if (result == CUDA_SUCCESS)
            event_record(item->params.event, stream);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return stream_submit(stream, work_ns);
}

/* Of a graph in a graph only the time is kept. */
static CUresult capture_launch(CUgraphExec exec, CUstream stream)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    CUresult result = capture_node(stream, &params);
    if (result != CUDA_SUCCESS)
        return result;
    for (const struct item *item = exec->items; item < exec->items + exec->count; item++)
        stream->after.nodes[0]->work_ns += item->work_ns;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (exec == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (stream->capture != NULL)
        return driver_leave(capture_launch(exec, stream));
    result = take_memory(exec);
    return driver_leave(result == CUDA_SUCCESS ? run(exec, stream) : result);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    return cuGraphLaunch(exec, per_thread(stream));
}

/* Gets the memory before the first launch. */
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    CUresult result = stream_enter(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (exec == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    const struct need need = run_memory_nodes(exec);
    undo_memory_nodes(exec);
    return driver_leave(need.peak == 0 ? CUDA_SUCCESS
                                       : graph_memory_use(need.card, (uint64_t)need.peak, 0));
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    return cuGraphUpload(exec, per_thread(stream));
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (exec == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    drop_items(exec);
    free(exec);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
    if (exec == NULL || flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    CUfunction function = NULL;
    if (params != NULL)
        function = params->v1.func != NULL ? params->v1.func : params->kern;
    if (exec == NULL || function == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    for (struct item *item = exec->items; item < exec->items + exec->count; item++)
        if (item->node == node && item->params.type == CU_GRAPH_NODE_TYPE_KERNEL) {
            item->work_ns = launch_work_ns(function, params->v1.kernelParams, params->v1.extra);
            return driver_leave(CUDA_SUCCESS);
        }
    return driver_leave(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    CUDA_KERNEL_NODE_PARAMS wide = {.kern = NULL};
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    wide.v1 = *params;
    return cuGraphExecKernelNodeSetParams_v2(exec, node, &wide);
}

/* Graphs of the same types in the same order can replace one another. */
static bool matches(CUgraphExec exec, CUgraph graph)
{
    struct CUgraphExec_st other = {.items = NULL};
    bool same = fill(&other, graph) == CUDA_SUCCESS && other.count == exec->count;
    for (size_t i = 0; same && i < exec->count; i++)
        same = exec->items[i].params.type == other.items[i].params.type;
    drop_items(&other);
    return same;
}

static CUresult update(CUgraphExec exec, CUgraph graph)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (exec == NULL || graph == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (!matches(exec, graph))
        return driver_leave(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    return driver_leave(fill(exec, graph));
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, int *outcome)
{
    CUresult result = update(exec, graph);
    if (error_node != NULL)
        *error_node = NULL;
    if (outcome != NULL)
        *outcome = result != CUDA_SUCCESS;
    return result;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                              CUgraphExecUpdateResultInfo *outcome)
{
    CUresult result = update(exec, graph);
    if (outcome != NULL)
        *(int *)(void *)outcome = result != CUDA_SUCCESS; /* its first member */
    return result;
}
