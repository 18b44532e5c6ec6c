/* The part of the CUDA driver API that the guard hooks, the simulated driver implements and the
 * samples call. Our own declarations, written from the public documentation.
 *
 * Every name is the one in the library (cuMemAlloc_v2, not a macro for it). For each function NAME
 * there is a prototype and a function type NAME_fn, so `NAME_fn *real` is a pointer to it.
 * A per-thread-default-stream twin (…_ptsz, …_ptds) has the type of its legacy twin. */
#ifndef CASABA_CUDA_API_H
#define CASABA_CUDA_API_H

#include "cuda_types.h"

#define CUDA_API(name, ...)            \
    typedef CUresult name##_fn(__VA_ARGS__); \
    extern name##_fn name;
#define CUDA_API_TWIN(name, twin) extern name##_fn twin;

/* Start, version, errors, symbols */
CUDA_API(cuInit, unsigned int flags)
CUDA_API(cuDriverGetVersion, int *version)
CUDA_API(cuGetErrorName, CUresult error, const char **text)
CUDA_API(cuGetErrorString, CUresult error, const char **text)
CUDA_API(cuGetProcAddress, const char *symbol, void **pfn, int cuda_version, cuuint64_t flags)
CUDA_API(cuGetProcAddress_v2, const char *symbol, void **pfn, int cuda_version, cuuint64_t flags,
         CUdriverProcAddressQueryResult *status)
CUDA_API_TWIN(cuGetProcAddress_v2, cuGetProcAddress_v2_ptsz)
CUDA_API(cuGetExportTable, const void **table, const CUuuid *table_id)

/* Devices */
CUDA_API(cuDeviceGet, CUdevice *device, int ordinal)
CUDA_API(cuDeviceGetCount, int *count)
CUDA_API(cuDeviceGetName, char *name, int length, CUdevice device)
CUDA_API(cuDeviceGetUuid, CUuuid *uuid, CUdevice device)
CUDA_API(cuDeviceGetUuid_v2, CUuuid *uuid, CUdevice device)
CUDA_API(cuDeviceTotalMem, unsigned int *bytes, CUdevice device)
CUDA_API(cuDeviceTotalMem_v2, size_t *bytes, CUdevice device)
CUDA_API(cuDeviceGetAttribute, int *value, CUdevice_attribute attribute, CUdevice device)
CUDA_API(cuDeviceComputeCapability, int *major, int *minor, CUdevice device)
CUDA_API(cuDeviceGetPCIBusId, char *bus_id, int length, CUdevice device)
CUDA_API(cuDeviceGetByPCIBusId, CUdevice *device, const char *bus_id)
CUDA_API(cuDeviceCanAccessPeer, int *can_access, CUdevice device, CUdevice peer)

/* Primary contexts */
CUDA_API(cuDevicePrimaryCtxRetain, CUcontext *context, CUdevice device)
CUDA_API(cuDevicePrimaryCtxRelease, CUdevice device)
CUDA_API(cuDevicePrimaryCtxRelease_v2, CUdevice device)
CUDA_API(cuDevicePrimaryCtxReset, CUdevice device)
CUDA_API(cuDevicePrimaryCtxReset_v2, CUdevice device)
CUDA_API(cuDevicePrimaryCtxSetFlags, CUdevice device, unsigned int flags)
CUDA_API(cuDevicePrimaryCtxSetFlags_v2, CUdevice device, unsigned int flags)
CUDA_API(cuDevicePrimaryCtxGetState, CUdevice device, unsigned int *flags, int *active)

/* Contexts */
CUDA_API(cuCtxCreate, CUcontext *context, unsigned int flags, CUdevice device)
CUDA_API(cuCtxCreate_v2, CUcontext *context, unsigned int flags, CUdevice device)
CUDA_API(cuCtxCreate_v3, CUcontext *context, CUexecAffinityParam *affinity, int affinity_count,
         unsigned int flags, CUdevice device)
CUDA_API(cuCtxCreate_v4, CUcontext *context, CUctxCreateParams *params, unsigned int flags,
         CUdevice device)
CUDA_API(cuCtxDestroy, CUcontext context)
CUDA_API(cuCtxDestroy_v2, CUcontext context)
CUDA_API(cuCtxGetCurrent, CUcontext *context)
CUDA_API(cuCtxSetCurrent, CUcontext context)
CUDA_API(cuCtxPushCurrent, CUcontext context)
CUDA_API(cuCtxPushCurrent_v2, CUcontext context)
CUDA_API(cuCtxPopCurrent, CUcontext *context)
CUDA_API(cuCtxPopCurrent_v2, CUcontext *context)
CUDA_API(cuCtxGetDevice, CUdevice *device)
CUDA_API(cuCtxGetDevice_v2, CUdevice *device, CUcontext context)
CUDA_API(cuCtxGetApiVersion, CUcontext context, unsigned int *version)
CUDA_API(cuCtxGetFlags, unsigned int *flags)
CUDA_API(cuCtxSynchronize, void)
CUDA_API(cuCtxSynchronize_v2, CUcontext context)
CUDA_API(cuCtxAttach, CUcontext *context, unsigned int flags)
CUDA_API(cuCtxDetach, CUcontext context)
CUDA_API(cuGreenCtxCreate, CUgreenCtx *green, CUdevResourceDesc resources, CUdevice device,
         unsigned int flags)
CUDA_API(cuGreenCtxDestroy, CUgreenCtx green)
CUDA_API(cuCtxFromGreenCtx, CUcontext *context, CUgreenCtx green)

/* Memory */
CUDA_API(cuMemGetInfo, unsigned int *free_bytes, unsigned int *total_bytes)
CUDA_API(cuMemGetInfo_v2, size_t *free_bytes, size_t *total_bytes)
CUDA_API(cuMemAlloc, CUdeviceptr_v1 *pointer, unsigned int bytes)
CUDA_API(cuMemAlloc_v2, CUdeviceptr *pointer, size_t bytes)
CUDA_API(cuMemAllocPitch, CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width_bytes,
         unsigned int height, unsigned int element_bytes)
CUDA_API(cuMemAllocPitch_v2, CUdeviceptr *pointer, size_t *pitch, size_t width_bytes,
         size_t height, unsigned int element_bytes)
CUDA_API(cuMemAllocManaged, CUdeviceptr *pointer, size_t bytes, unsigned int flags)
CUDA_API(cuMemFree, CUdeviceptr_v1 pointer)
CUDA_API(cuMemFree_v2, CUdeviceptr pointer)
CUDA_API(cuMemGetAddressRange, CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 pointer)
CUDA_API(cuMemGetAddressRange_v2, CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
CUDA_API(cuMemAllocHost, void **pointer, unsigned int bytes)
CUDA_API(cuMemAllocHost_v2, void **pointer, size_t bytes)
CUDA_API(cuMemHostAlloc, void **pointer, size_t bytes, unsigned int flags)
CUDA_API(cuMemFreeHost, void *pointer)

/* Virtual memory management */
CUDA_API(cuMemAddressReserve, CUdeviceptr *pointer, size_t bytes, size_t alignment,
         CUdeviceptr address, unsigned long long flags)
CUDA_API(cuMemAddressFree, CUdeviceptr pointer, size_t bytes)
CUDA_API(cuMemCreate, CUmemGenericAllocationHandle *handle, size_t bytes,
         const CUmemAllocationProp *prop, unsigned long long flags)
CUDA_API(cuMemRelease, CUmemGenericAllocationHandle handle)
CUDA_API(cuMemMap, CUdeviceptr pointer, size_t bytes, size_t offset,
         CUmemGenericAllocationHandle handle, unsigned long long flags)
CUDA_API(cuMemUnmap, CUdeviceptr pointer, size_t bytes)
CUDA_API(cuMemSetAccess, CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *desc,
         size_t count)
CUDA_API(cuMemGetAllocationGranularity, size_t *granularity, const CUmemAllocationProp *prop,
         CUmemAllocationGranularity_flags option)
CUDA_API(cuMemGetAllocationPropertiesFromHandle, CUmemAllocationProp *prop,
         CUmemGenericAllocationHandle handle)
CUDA_API(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *handle, void *address)
CUDA_API(cuMemExportToShareableHandle, void *shareable, CUmemGenericAllocationHandle handle,
         CUmemAllocationHandleType type, unsigned long long flags)
CUDA_API(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *handle, void *shareable,
         CUmemAllocationHandleType type)

/* Stream-ordered memory and pools */
CUDA_API(cuMemAllocAsync, CUdeviceptr *pointer, size_t bytes, CUstream stream)
CUDA_API(cuMemAllocFromPoolAsync, CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
         CUstream stream)
CUDA_API(cuMemFreeAsync, CUdeviceptr pointer, CUstream stream)
CUDA_API(cuMemPoolCreate, CUmemoryPool *pool, const CUmemPoolProps *props)
CUDA_API(cuMemPoolDestroy, CUmemoryPool pool)
CUDA_API(cuMemPoolTrimTo, CUmemoryPool pool, size_t bytes_to_keep)
CUDA_API(cuMemPoolSetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
CUDA_API(cuMemPoolGetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
CUDA_API(cuMemPoolSetAccess, CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
CUDA_API(cuMemPoolGetAccess, CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
CUDA_API(cuMemPoolExportToShareableHandle, void *shareable, CUmemoryPool pool,
         CUmemAllocationHandleType type, unsigned long long flags)
CUDA_API(cuMemPoolImportFromShareableHandle, CUmemoryPool *pool, void *shareable,
         CUmemAllocationHandleType type, unsigned long long flags)
CUDA_API(cuMemPoolExportPointer, CUmemPoolPtrExportData *shared, CUdeviceptr pointer)
CUDA_API(cuMemPoolImportPointer, CUdeviceptr *pointer, CUmemoryPool pool,
         CUmemPoolPtrExportData *shared)
CUDA_API(cuDeviceGetDefaultMemPool, CUmemoryPool *pool, CUdevice device)
CUDA_API(cuDeviceGetMemPool, CUmemoryPool *pool, CUdevice device)
CUDA_API(cuDeviceSetMemPool, CUdevice device, CUmemoryPool pool)
CUDA_API_TWIN(cuMemAllocAsync, cuMemAllocAsync_ptsz)
CUDA_API_TWIN(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz)
CUDA_API_TWIN(cuMemFreeAsync, cuMemFreeAsync_ptsz)

/* Arrays */
CUDA_API(cuArrayCreate, CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor)
CUDA_API(cuArrayCreate_v2, CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
CUDA_API(cuArray3DCreate, CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor)
CUDA_API(cuArray3DCreate_v2, CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
CUDA_API(cuArrayDestroy, CUarray array)
CUDA_API(cuArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUarray array,
         CUdevice device)
CUDA_API(cuMipmappedArrayCreate, CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
         unsigned int levels)
CUDA_API(cuMipmappedArrayGetLevel, CUarray *level_array, CUmipmappedArray array, unsigned int level)
CUDA_API(cuMipmappedArrayDestroy, CUmipmappedArray array)
CUDA_API(cuMemMapArrayAsync, CUarrayMapInfo *list, unsigned int count, CUstream stream)
CUDA_API_TWIN(cuMemMapArrayAsync, cuMemMapArrayAsync_ptsz)

/* Memory of other processes and programming interfaces */
CUDA_API(cuIpcGetMemHandle, CUipcMemHandle *handle, CUdeviceptr pointer)
CUDA_API(cuIpcOpenMemHandle, CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
CUDA_API(cuIpcOpenMemHandle_v2, CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
CUDA_API(cuIpcCloseMemHandle, CUdeviceptr pointer)
CUDA_API(cuImportExternalMemory, CUexternalMemory *memory,
         const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *descriptor)
CUDA_API(cuExternalMemoryGetMappedBuffer, CUdeviceptr *pointer, CUexternalMemory memory,
         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *descriptor)
CUDA_API(cuDestroyExternalMemory, CUexternalMemory memory)

/* Graphs, as far as they hold memory */
CUDA_API(cuGraphAddMemAllocNode, CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
         size_t dependency_count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
CUDA_API(cuGraphMemAllocNodeGetParams, CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)
CUDA_API(cuGraphAddMemFreeNode, CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
         size_t dependency_count, CUdeviceptr pointer)
CUDA_API(cuGraphGetNodes, CUgraph graph, CUgraphNode *nodes, size_t *count)
CUDA_API(cuGraphNodeGetType, CUgraphNode node, CUgraphNodeType *type)
CUDA_API(cuGraphChildGraphNodeGetGraph, CUgraphNode node, CUgraph *graph)
CUDA_API(cuGraphInstantiate, CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
         char *log, size_t log_bytes)
CUDA_API(cuGraphInstantiate_v2, CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
         char *log, size_t log_bytes)
CUDA_API(cuGraphInstantiateWithFlags, CUgraphExec *exec, CUgraph graph, unsigned long long flags)
CUDA_API(cuGraphInstantiateWithParams, CUgraphExec *exec, CUgraph graph,
         CUDA_GRAPH_INSTANTIATE_PARAMS *params)
CUDA_API(cuGraphUpload, CUgraphExec exec, CUstream stream)
CUDA_API(cuDeviceGraphMemTrim, CUdevice device)
CUDA_API(cuDeviceGetGraphMemAttribute, CUdevice device, CUgraphMem_attribute attribute,
         void *value)
CUDA_API_TWIN(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz)
CUDA_API_TWIN(cuGraphUpload, cuGraphUpload_ptsz)

/* Moving bytes */
CUDA_API(cuMemcpy, CUdeviceptr to, CUdeviceptr from, size_t bytes)
CUDA_API(cuMemcpyAsync, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
CUDA_API(cuMemcpyHtoD_v2, CUdeviceptr to, const void *from, size_t bytes)
CUDA_API(cuMemcpyHtoDAsync_v2, CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
CUDA_API(cuMemcpyDtoH_v2, void *to, CUdeviceptr from, size_t bytes)
CUDA_API(cuMemcpyDtoHAsync_v2, void *to, CUdeviceptr from, size_t bytes, CUstream stream)
CUDA_API(cuMemcpyDtoD_v2, CUdeviceptr to, CUdeviceptr from, size_t bytes)
CUDA_API(cuMemcpyDtoDAsync_v2, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
CUDA_API(cuMemsetD8_v2, CUdeviceptr pointer, unsigned char value, size_t count)
CUDA_API(cuMemsetD8Async, CUdeviceptr pointer, unsigned char value, size_t count, CUstream stream)
CUDA_API(cuMemsetD16_v2, CUdeviceptr pointer, unsigned short value, size_t count)
CUDA_API(cuMemsetD16Async, CUdeviceptr pointer, unsigned short value, size_t count,
         CUstream stream)
CUDA_API(cuMemsetD32_v2, CUdeviceptr pointer, unsigned int value, size_t count)
CUDA_API(cuMemsetD32Async, CUdeviceptr pointer, unsigned int value, size_t count, CUstream stream)
CUDA_API_TWIN(cuMemcpy, cuMemcpy_ptds)
CUDA_API_TWIN(cuMemcpyAsync, cuMemcpyAsync_ptsz)
CUDA_API_TWIN(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds)
CUDA_API_TWIN(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz)
CUDA_API_TWIN(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds)
CUDA_API_TWIN(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz)
CUDA_API_TWIN(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds)
CUDA_API_TWIN(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz)
CUDA_API_TWIN(cuMemsetD8_v2, cuMemsetD8_v2_ptds)
CUDA_API_TWIN(cuMemsetD8Async, cuMemsetD8Async_ptsz)
CUDA_API_TWIN(cuMemsetD16_v2, cuMemsetD16_v2_ptds)
CUDA_API_TWIN(cuMemsetD16Async, cuMemsetD16Async_ptsz)
CUDA_API_TWIN(cuMemsetD32_v2, cuMemsetD32_v2_ptds)
CUDA_API_TWIN(cuMemsetD32Async, cuMemsetD32Async_ptsz)

/* Modules and launches */
CUDA_API(cuModuleLoad, CUmodule *module, const char *path)
CUDA_API(cuModuleLoadData, CUmodule *module, const void *image)
CUDA_API(cuModuleUnload, CUmodule module)
CUDA_API(cuModuleGetFunction, CUfunction *function, CUmodule module, const char *name)
CUDA_API(cuLaunchKernel, CUfunction function, unsigned int grid_x, unsigned int grid_y,
         unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
         unsigned int shared_bytes, CUstream stream, void **params, void **extra)
CUDA_API(cuLaunchKernelEx, const CUlaunchConfig *config, CUfunction function, void **params,
         void **extra)
CUDA_API(cuLaunchCooperativeKernel, CUfunction function, unsigned int grid_x, unsigned int grid_y,
         unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
         unsigned int shared_bytes, CUstream stream, void **params)
CUDA_API(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS *launches, unsigned int count,
         unsigned int flags)
CUDA_API(cuLaunch, CUfunction function)
CUDA_API(cuLaunchGrid, CUfunction function, int grid_width, int grid_height)
CUDA_API(cuLaunchGridAsync, CUfunction function, int grid_width, int grid_height, CUstream stream)
CUDA_API_TWIN(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz)
CUDA_API_TWIN(cuLaunchKernel, cuLaunchKernel_ptsz)
CUDA_API_TWIN(cuLaunchKernelEx, cuLaunchKernelEx_ptsz)

/* Captures and graphs as launches */
CUDA_API(cuStreamBeginCapture, CUstream stream)
CUDA_API(cuStreamBeginCapture_v2, CUstream stream, CUstreamCaptureMode mode)
CUDA_API(cuStreamBeginCaptureToGraph, CUstream stream, CUgraph graph,
         const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
         CUstreamCaptureMode mode)
CUDA_API(cuStreamEndCapture, CUstream stream, CUgraph *graph)
CUDA_API(cuStreamIsCapturing, CUstream stream, CUstreamCaptureStatus *status)
CUDA_API(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode *mode)
CUDA_API(cuGraphLaunch, CUgraphExec exec, CUstream stream)
CUDA_API(cuGraphExecDestroy, CUgraphExec exec)
CUDA_API_TWIN(cuStreamBeginCapture, cuStreamBeginCapture_ptsz)
CUDA_API_TWIN(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz)
CUDA_API_TWIN(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz)
CUDA_API_TWIN(cuStreamEndCapture, cuStreamEndCapture_ptsz)
CUDA_API_TWIN(cuStreamIsCapturing, cuStreamIsCapturing_ptsz)
CUDA_API_TWIN(cuGraphLaunch, cuGraphLaunch_ptsz)

/* Streams and events */
CUDA_API(cuStreamCreate, CUstream *stream, unsigned int flags)
CUDA_API(cuStreamCreateWithPriority, CUstream *stream, unsigned int flags, int priority)
CUDA_API(cuStreamDestroy, CUstream stream)
CUDA_API(cuStreamDestroy_v2, CUstream stream)
CUDA_API(cuStreamQuery, CUstream stream)
CUDA_API(cuStreamSynchronize, CUstream stream)
CUDA_API(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned int flags)
CUDA_API(cuStreamGetCtx, CUstream stream, CUcontext *context)
CUDA_API(cuEventCreate, CUevent *event, unsigned int flags)
CUDA_API(cuEventDestroy, CUevent event)
CUDA_API(cuEventDestroy_v2, CUevent event)
CUDA_API(cuEventRecord, CUevent event, CUstream stream)
CUDA_API(cuEventQuery, CUevent event)
CUDA_API(cuEventSynchronize, CUevent event)
CUDA_API(cuEventElapsedTime, float *milliseconds, CUevent start, CUevent end)
CUDA_API(cuEventElapsedTime_v2, float *milliseconds, CUevent start, CUevent end)
CUDA_API_TWIN(cuStreamGetCtx, cuStreamGetCtx_ptsz)
CUDA_API_TWIN(cuStreamQuery, cuStreamQuery_ptsz)
CUDA_API_TWIN(cuStreamSynchronize, cuStreamSynchronize_ptsz)
CUDA_API_TWIN(cuStreamWaitEvent, cuStreamWaitEvent_ptsz)
CUDA_API_TWIN(cuEventRecord, cuEventRecord_ptsz)

#endif
