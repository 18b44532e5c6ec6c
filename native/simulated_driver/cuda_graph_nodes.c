/* The typed entry points that add nodes and ask about them. */
#include <string.h>

#include "cuda_graphs.h"
#include "cuda_launch.h"

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                        size_t count, CUgraphNodeParams *params)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (node == NULL || graph == NULL || params == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    return driver_leave(node_add(node, graph, dependencies, count, params));
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
    (void)edges; /* every edge waits for the whole node */
    return cuGraphAddNode(node, graph, dependencies, count, params);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph,
                                 const CUgraphNode *dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    all.kernel = *params;
    return cuGraphAddNode(node, graph, dependencies, count, &all);
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    CUDA_KERNEL_NODE_PARAMS wide = {.kern = NULL};
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    wide.v1 = *params;
    return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &wide);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMCPY3D *params, CUcontext context)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    (void)context;
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return cuGraphAddNode(node, graph, dependencies, count, &all);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS *params,
                              CUcontext context)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    (void)context;
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    all.memset = *params;
    return cuGraphAddNode(node, graph, dependencies, count, &all);
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS *params)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_HOST};
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    all.host = *params;
    return cuGraphAddNode(node, graph, dependencies, count, &all);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                             size_t count)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return cuGraphAddNode(node, graph, dependencies, count, &all);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph,
                                  const CUgraphNode *dependencies, size_t count, CUgraph child)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = child};
    return cuGraphAddNode(node, graph, dependencies, count, &all);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph,
                                   const CUgraphNode *dependencies, size_t count, CUevent event)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = event};
    return cuGraphAddNode(node, graph, dependencies, count, &all);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph,
                                 const CUgraphNode *dependencies, size_t count, CUevent event)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event = event};
    return cuGraphAddNode(node, graph, dependencies, count, &all);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    all.alloc = *params;
    CUresult result = cuGraphAddNode(node, graph, dependencies, count, &all);
    if (result == CUDA_SUCCESS)
        params->dptr = all.alloc.dptr;
    return result;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               size_t count, CUdeviceptr pointer)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .freed = pointer};
    return cuGraphAddNode(node, graph, dependencies, count, &all);
}

/* Takes the lock for a question about a node of that type. */
static CUresult enter_node(CUgraphNode node, const void *answer, CUgraphNodeType type)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (node == NULL || answer == NULL || node->params.type != type)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

#define NODE_ANSWER(name, answer_type, node_type, expression)                  \
    CUresult name(CUgraphNode node, answer_type *answer)                       \
    {                                                                          \
        CUresult result = enter_node(node, answer, node_type);                 \
        if (result != CUDA_SUCCESS)                                            \
            return result;                                                     \
        *answer = (expression);                                                \
        return driver_leave(CUDA_SUCCESS);                                     \
    }

NODE_ANSWER(cuGraphMemAllocNodeGetParams, CUDA_MEM_ALLOC_NODE_PARAMS,
            CU_GRAPH_NODE_TYPE_MEM_ALLOC, node->params.alloc)
NODE_ANSWER(cuGraphMemFreeNodeGetParams, CUdeviceptr, CU_GRAPH_NODE_TYPE_MEM_FREE,
            node->params.freed)
NODE_ANSWER(cuGraphChildGraphNodeGetGraph, CUgraph, CU_GRAPH_NODE_TYPE_GRAPH, node->params.graph)
NODE_ANSWER(cuGraphKernelNodeGetParams, CUDA_KERNEL_NODE_PARAMS_v1, CU_GRAPH_NODE_TYPE_KERNEL,
            node->params.kernel.v1)
NODE_ANSWER(cuGraphKernelNodeGetParams_v2, CUDA_KERNEL_NODE_PARAMS, CU_GRAPH_NODE_TYPE_KERNEL,
            node->params.kernel)

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (node == NULL || type == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *type = node->params.type;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUresult result = enter_node(node, params, CU_GRAPH_NODE_TYPE_KERNEL);
    if (result != CUDA_SUCCESS)
        return result;
    CUfunction function = params->v1.func != NULL ? params->v1.func : params->kern;
    if (function == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    node->params.kernel = *params;
    node->params.kernel.v1.func = function;
    node->work_ns = launch_work_ns(function, params->v1.kernelParams, params->v1.extra);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    CUDA_KERNEL_NODE_PARAMS wide = {.kern = NULL};
    if (params == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    wide.v1 = *params;
    return cuGraphKernelNodeSetParams_v2(node, &wide);
}

/* The lists share one form: without room only the count is told. */
static void put(CUgraphNode *nodes, size_t room, size_t *found, CUgraphNode node)
{
    if (nodes != NULL && *found < room)
        nodes[*found] = node;
    ++*found;
}

static void list_end(const CUgraphNode *nodes, size_t *count, size_t found)
{
    if (nodes == NULL || found < *count)
        *count = found;
}

static CUresult list_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count, bool roots)
{
    size_t found = 0;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (graph == NULL || count == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        if (!roots || node->after.count == 0)
            put(nodes, *count, &found, node);
    list_end(nodes, count, found);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return list_nodes(graph, nodes, count, false);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return list_nodes(graph, nodes, count, true);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *dependencies, size_t *count)
{
    size_t found = 0;
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (node == NULL || count == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < node->after.count; i++)
        put(dependencies, *count, &found, node->after.nodes[i]);
    list_end(dependencies, count, found);
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                size_t count)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (graph == NULL || (count > 0 && (from == NULL || to == NULL)))
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        if (from[i]->graph != graph || to[i]->graph != graph || from[i]->number >= to[i]->number)
            result = CUDA_ERROR_INVALID_VALUE;
        else if (!node_set_add(&to[i]->after, &from[i], 1))
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return driver_leave(result);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count)
{
    (void)edges;
    return cuGraphAddDependencies(graph, from, to, count);
}
