/* The part of the CUDA driver API that only the virtual card needs: callbacks, nodes of graphs,
 * pools and libraries, what is asked of streams and functions. As cuda_api.h, to which it
 * belongs. */
#ifndef CASABA_CUDA_WIDER_API_H
#define CASABA_CUDA_WIDER_API_H

#include "cuda_api.h"

typedef void (*CUhostFn)(void *argument);
typedef void (*CUstreamCallback)(CUstream stream, CUresult result, void *argument);

#define CU_LAUNCH_PARAM_END ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

typedef struct {
    CUfunction func;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams, **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;

typedef struct {
    CUDA_KERNEL_NODE_PARAMS_v1 v1;
    CUfunction kern; /* used when func is NULL */
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
    CUdeviceptr dst;
    size_t pitch;
    unsigned int value, elementSize;
    size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
    CUhostFn fn;
    void *userData;
} CUDA_HOST_NODE_PARAMS;

typedef struct {
    unsigned char words[200]; /* carried, not read */
} CUDA_MEMCPY3D;

typedef struct {
    CUgraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        CUDA_KERNEL_NODE_PARAMS kernel;
        CUDA_MEMSET_NODE_PARAMS memset;
        CUDA_HOST_NODE_PARAMS host;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        CUgraph graph;
        CUevent event;
        CUdeviceptr freed;
    };
    long long reserved2;
} CUgraphNodeParams;

enum { CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1 };
enum { CU_STREAM_ADD_CAPTURE_DEPENDENCIES = 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1 };

_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == 72, "CUDA_KERNEL_NODE_PARAMS");
_Static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS) == 40, "CUDA_MEMSET_NODE_PARAMS");
_Static_assert(sizeof(CUgraphNodeParams) == 256, "CUgraphNodeParams");

CUDA_API(cuLaunchHostFunc, CUstream stream, CUhostFn function, void *argument)
CUDA_API(cuStreamAddCallback, CUstream stream, CUstreamCallback function, void *argument,
         unsigned int flags)
CUDA_API(cuStreamGetFlags, CUstream stream, unsigned int *flags)
CUDA_API(cuStreamGetPriority, CUstream stream, int *priority)
CUDA_API(cuStreamGetId, CUstream stream, unsigned long long *id)
CUDA_API(cuStreamGetCaptureInfo, CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
CUDA_API(cuStreamGetCaptureInfo_v2, CUstream stream, CUstreamCaptureStatus *status,
         cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies, size_t *count)
CUDA_API(cuStreamGetCaptureInfo_v3, CUstream stream, CUstreamCaptureStatus *status,
         cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies,
         const CUgraphEdgeData **edges, size_t *count)
CUDA_API(cuStreamUpdateCaptureDependencies, CUstream stream, CUgraphNode *dependencies,
         size_t count, unsigned int flags)
CUDA_API(cuStreamUpdateCaptureDependencies_v2, CUstream stream, CUgraphNode *dependencies,
         const CUgraphEdgeData *edges, size_t count, unsigned int flags)
CUDA_API(cuEventRecordWithFlags, CUevent event, CUstream stream, unsigned int flags)

CUDA_API(cuGraphCreate, CUgraph *graph, unsigned int flags)
CUDA_API(cuGraphDestroy, CUgraph graph)
CUDA_API(cuGraphAddNode, CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
         size_t count, CUgraphNodeParams *params)
CUDA_API(cuGraphAddNode_v2, CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
         const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
CUDA_API(cuGraphAddKernelNode, CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
         size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
CUDA_API(cuGraphAddKernelNode_v2, CUgraphNode *node, CUgraph graph,
         const CUgraphNode *dependencies, size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
CUDA_API(cuGraphAddMemcpyNode, CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
         size_t count, const CUDA_MEMCPY3D *params, CUcontext context)
CUDA_API(cuGraphAddMemsetNode, CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
         size_t count, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
CUDA_API(cuGraphAddHostNode, CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
         size_t count, const CUDA_HOST_NODE_PARAMS *params)
CUDA_API(cuGraphAddEmptyNode, CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
         size_t count)
CUDA_API(cuGraphAddChildGraphNode, CUgraphNode *node, CUgraph graph,
         const CUgraphNode *dependencies, size_t count, CUgraph child)
CUDA_API(cuGraphAddEventRecordNode, CUgraphNode *node, CUgraph graph,
         const CUgraphNode *dependencies, size_t count, CUevent event)
CUDA_API(cuGraphAddEventWaitNode, CUgraphNode *node, CUgraph graph,
         const CUgraphNode *dependencies, size_t count, CUevent event)
CUDA_API(cuGraphMemFreeNodeGetParams, CUgraphNode node, CUdeviceptr *pointer)
CUDA_API(cuGraphKernelNodeGetParams, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params)
CUDA_API(cuGraphKernelNodeGetParams_v2, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
CUDA_API(cuGraphKernelNodeSetParams, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
CUDA_API(cuGraphKernelNodeSetParams_v2, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
CUDA_API(cuGraphExecKernelNodeSetParams, CUgraphExec exec, CUgraphNode node,
         const CUDA_KERNEL_NODE_PARAMS_v1 *params)
CUDA_API(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode node,
         const CUDA_KERNEL_NODE_PARAMS *params)
CUDA_API(cuGraphClone, CUgraph *clone, CUgraph graph)
CUDA_API(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode *dependencies, size_t *count)
CUDA_API(cuGraphGetRootNodes, CUgraph graph, CUgraphNode *nodes, size_t *count)
CUDA_API(cuGraphAddDependencies, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
         size_t count)
CUDA_API(cuGraphAddDependencies_v2, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
         const CUgraphEdgeData *edges, size_t count)
CUDA_API(cuGraphExecUpdate, CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, int *result)
CUDA_API(cuGraphExecUpdate_v2, CUgraphExec exec, CUgraph graph,
         CUgraphExecUpdateResultInfo *result)
CUDA_API(cuGraphExecGetFlags, CUgraphExec exec, cuuint64_t *flags)
CUDA_API(cuDeviceSetGraphMemAttribute, CUdevice device, CUgraphMem_attribute attribute,
         void *value)

enum { CU_DEV_RESOURCE_TYPE_SM = 1, CU_GREEN_CTX_DEFAULT_STREAM = 1 };
typedef struct CUdevResource_st {
    int type;
    unsigned char padding[92];
    union {
        struct {
            unsigned int smCount, minSmPartitionSize, smCoscheduledAlignment, flags;
        } sm;
        unsigned char oversize[40];
    };
    struct CUdevResource_st *nextResource;
} CUdevResource;
_Static_assert(sizeof(CUdevResource) == 144, "CUdevResource");
CUDA_API(cuDeviceGetDevResource, CUdevice device, CUdevResource *resource, int type)
CUDA_API(cuGreenCtxGetDevResource, CUgreenCtx green, CUdevResource *resource, int type)
CUDA_API(cuDevResourceGenerateDesc, CUdevResourceDesc *description, CUdevResource *resources,
         unsigned int count)
CUDA_API(cuGreenCtxStreamCreate, CUstream *stream, CUgreenCtx green, unsigned int flags,
         int priority)
CUDA_API(cuProfilerInitialize, const char *config, const char *output, int mode)
CUDA_API(cuProfilerStart, void)
CUDA_API(cuProfilerStop, void)
typedef struct CUlib_st *CUlibrary;
CUDA_API(cuLibraryLoadData, CUlibrary *library, const void *code, int *jit_options,
         void **jit_values, unsigned int jit_count, int *options, void **values,
         unsigned int count)
CUDA_API(cuLibraryLoadFromFile, CUlibrary *library, const char *path, int *jit_options,
         void **jit_values, unsigned int jit_count, int *options, void **values,
         unsigned int count)
CUDA_API(cuLibraryUnload, CUlibrary library)
CUDA_API(cuLibraryGetModule, CUmodule *module, CUlibrary library)
CUDA_API(cuLibraryGetKernel, CUfunction *kernel, CUlibrary library, const char *name)
CUDA_API(cuKernelGetFunction, CUfunction *function, CUfunction kernel)
CUDA_API(cuModuleLoadDataEx, CUmodule *module, const void *image, unsigned int count, int *options,
         void **values)
CUDA_API(cuModuleLoadFatBinary, CUmodule *module, const void *image)
CUDA_API(cuFuncGetModule, CUmodule *module, CUfunction function)
CUDA_API(cuFuncGetName, const char **name, CUfunction function)
CUDA_API(cuFuncGetAttribute, int *value, int attribute, CUfunction function)
CUDA_API(cuFuncSetAttribute, CUfunction function, int attribute, int value)
CUDA_API(cuFuncSetCacheConfig, CUfunction function, int config)
CUDA_API(cuFuncSetBlockShape, CUfunction function, int x, int y, int z)
CUDA_API(cuParamSetSize, CUfunction function, unsigned int bytes)
CUDA_API(cuCtxGetStreamPriorityRange, int *least, int *greatest)
CUDA_API(cuArray3DGetDescriptor_v2, CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array)
CUDA_API(cuArrayGetDescriptor_v2, CUDA_ARRAY_DESCRIPTOR *descriptor, CUarray array)
CUDA_API(cuMipmappedArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements,
         CUmipmappedArray array, CUdevice device)
CUDA_API(cuMemGetDefaultMemPool, CUmemoryPool *pool, CUmemLocation *location,
         CUmemAllocationType type)
CUDA_API(cuMemGetMemPool, CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
CUDA_API(cuMemSetMemPool, CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)

CUDA_API_TWIN(cuLaunchHostFunc, cuLaunchHostFunc_ptsz)
CUDA_API_TWIN(cuStreamAddCallback, cuStreamAddCallback_ptsz)
CUDA_API_TWIN(cuStreamGetFlags, cuStreamGetFlags_ptsz)
CUDA_API_TWIN(cuStreamGetPriority, cuStreamGetPriority_ptsz)
CUDA_API_TWIN(cuStreamGetId, cuStreamGetId_ptsz)
CUDA_API_TWIN(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz)
CUDA_API_TWIN(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz)
CUDA_API_TWIN(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz)
CUDA_API_TWIN(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz)
CUDA_API_TWIN(cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz)
CUDA_API_TWIN(cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz)

#endif
