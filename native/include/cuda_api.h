/* The part of the CUDA driver API that the guard hooks, the simulated driver implements and the
 * samples call. Our own declarations, written from the public documentation; binary compatible
 * with NVIDIA's (sizes are asserted below).
 *
 * Every name is the one in the library (cuMemAlloc_v2, not a macro for it). For each function NAME
 * there is a prototype and a function type NAME_fn, so `NAME_fn *real` is a pointer to it.
 * A per-thread-default-stream twin (…_ptsz, …_ptds) has the type of its legacy twin. */
#ifndef CASABA_CUDA_API_H
#define CASABA_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#define ERROR(name, value, text) name = value,
typedef enum {
#include "cuda_errors.def"
    CUDA_RESULT_FORCE_INT = 0x7fffffff
} CUresult;
#undef ERROR

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned int CUdeviceptr_v1; /* of the entry points without a suffix, before CUDA 3.2 */
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef unsigned long long CUmemGenericAllocationHandle;

typedef struct {
    unsigned char bytes[16]; /* of the UUID's text form, in order */
} CUuuid;

typedef enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = 9,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_MAX_PITCH = 11,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT = 14,
    CU_DEVICE_ATTRIBUTE_GPU_OVERLAP = 15,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT = 17,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
    CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31,
    CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    CU_DEVICE_ATTRIBUTE_TCC_DRIVER = 35,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED = 78,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
    CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD = 84,
    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
    CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    CU_DEVICE_ATTRIBUTE_FORCE_INT = 0x7fffffff
} CUdevice_attribute;

enum { CU_MEM_ATTACH_GLOBAL = 1, CU_MEM_ATTACH_HOST = 2, CU_MEM_ATTACH_SINGLE = 4 };
enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum { CU_EVENT_DEFAULT = 0, CU_EVENT_DISABLE_TIMING = 2 };

typedef enum {
    CU_MEM_LOCATION_TYPE_INVALID = 0,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_LOCATION_TYPE_HOST = 2,
    CU_MEM_LOCATION_TYPE_FORCE_INT = 0x7fffffff
} CUmemLocationType;

typedef struct {
    CUmemLocationType type;
    int id; /* device ordinal */
} CUmemLocation;

typedef enum {
    CU_MEM_ALLOCATION_TYPE_INVALID = 0,
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_ALLOCATION_TYPE_FORCE_INT = 0x7fffffff
} CUmemAllocationType;

typedef enum {
    CU_MEM_HANDLE_TYPE_NONE = 0,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    CU_MEM_HANDLE_TYPE_FORCE_INT = 0x7fffffff
} CUmemAllocationHandleType;

typedef struct {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef enum {
    CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
    CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    CU_MEM_ACCESS_FLAGS_FORCE_INT = 0x7fffffff
} CUmemAccess_flags;

typedef struct {
    CUmemLocation location;
    CUmemAccess_flags flags;
} CUmemAccessDesc;

typedef enum {
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
    CU_MEM_ALLOC_GRANULARITY_FORCE_INT = 0x7fffffff
} CUmemAllocationGranularity_flags;

typedef struct CUexecAffinityParam_st CUexecAffinityParam; /* never looked into here */
typedef struct CUctxCigParam_st CUctxCigParam;

typedef struct {
    CUexecAffinityParam *execAffinityParams;
    int numExecAffinityParams;
    CUctxCigParam *cigParams;
} CUctxCreateParams;

typedef struct CUlaunchAttribute_st CUlaunchAttribute;

typedef struct {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

typedef enum {
    CU_GET_PROC_ADDRESS_DEFAULT = 0,
    CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1,
    CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2
} CUdriverProcAddress_flags;

typedef enum {
    CU_GET_PROC_ADDRESS_SUCCESS = 0,
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
    CU_GET_PROC_ADDRESS_FORCE_INT = 0x7fffffff
} CUdriverProcAddressQueryResult;

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphEdgeData_st CUgraphEdgeData; /* never looked into here */
typedef struct CUgraphExecUpdateResultInfo_st CUgraphExecUpdateResultInfo;

typedef enum {
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2
} CUstreamCaptureMode;

typedef enum {
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2
} CUstreamCaptureStatus;

typedef struct {
    CUfunction function;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    void **kernelParams;
} CUDA_LAUNCH_PARAMS;

typedef enum {
    CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
    CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
    CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
    CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
    CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
    CU_MEMPOOL_ATTR_FORCE_INT = 0x7fffffff
} CUmemPool_attribute;

typedef struct {
    CUmemAllocationType allocType;
    CUmemAllocationHandleType handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char gpuDirectRDMACapable;
    unsigned char reserved[53];
} CUmemPoolProps;

typedef struct {
    unsigned char reserved[64];
} CUmemPoolPtrExportData;

typedef struct {
    char reserved[64];
} CUipcMemHandle;

enum { CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1 };

typedef enum {
    CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0,
    CU_GRAPH_MEM_ATTR_USED_MEM_HIGH = 1,
    CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2,
    CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH = 3,
    CU_GRAPH_MEM_ATTR_FORCE_INT = 0x7fffffff
} CUgraphMem_attribute;

typedef struct {
    CUmemPoolProps poolProps;
    const CUmemAccessDesc *accessDescs;
    size_t accessDescCount;
    size_t bytesize;
    CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef enum {
    CU_GRAPH_NODE_TYPE_KERNEL = 0,
    CU_GRAPH_NODE_TYPE_MEMCPY = 1,
    CU_GRAPH_NODE_TYPE_MEMSET = 2,
    CU_GRAPH_NODE_TYPE_HOST = 3,
    CU_GRAPH_NODE_TYPE_GRAPH = 4,
    CU_GRAPH_NODE_TYPE_EMPTY = 5,
    CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
    CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
    CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8,
    CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9,
    CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
    CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
    CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
    CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
    CU_GRAPH_NODE_TYPE_FORCE_INT = 0x7fffffff
} CUgraphNodeType;

enum { CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2 };

typedef enum {
    CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
    CUDA_GRAPH_INSTANTIATE_ERROR = 1,
    CUDA_GRAPH_INSTANTIATE_FORCE_INT = 0x7fffffff
} CUgraphInstantiateResult;

typedef struct {
    uint64_t flags;
    CUstream hUploadStream;
    CUgraphNode hErrNode_out;
    CUgraphInstantiateResult result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef enum {
    CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
    CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
    CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
    CU_AD_FORMAT_SIGNED_INT8 = 0x08,
    CU_AD_FORMAT_SIGNED_INT16 = 0x09,
    CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
    CU_AD_FORMAT_HALF = 0x10,
    CU_AD_FORMAT_FLOAT = 0x20,
    CU_AD_FORMAT_FORCE_INT = 0x7fffffff
} CUarray_format;

enum { CUDA_ARRAY3D_LAYERED = 0x01, CUDA_ARRAY3D_SPARSE = 0x40,
       CUDA_ARRAY3D_DEFERRED_MAPPING = 0x80 };

typedef struct {
    size_t Width, Height;
    CUarray_format Format;
    unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    unsigned int Width, Height;
    CUarray_format Format;
    unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;

typedef struct {
    size_t Width, Height, Depth;
    CUarray_format Format;
    unsigned int NumChannels;
    unsigned int Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
    unsigned int Width, Height, Depth;
    CUarray_format Format;
    unsigned int NumChannels;
    unsigned int Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

typedef struct {
    size_t size, alignment;
    unsigned int reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;

enum { CU_MEM_OPERATION_TYPE_MAP = 1, CU_MEM_OPERATION_TYPE_UNMAP = 2 };

typedef struct {
    int resourceType;
    void *resource; /* an array or mipmapped array */
    int subresourceType;
    unsigned long long subresource[4]; /* never looked into here */
    int memOperationType, memHandleType;
    CUmemGenericAllocationHandle memHandle;
    unsigned long long offset;
    unsigned int deviceBitMask, flags, reserved[2];
} CUarrayMapInfo;

typedef enum {
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD = 9,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_FORCE_INT = 0x7fffffff
} CUexternalMemoryHandleType;

typedef struct {
    CUexternalMemoryHandleType type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
        const void *nvSciBufObject;
    } handle;
    unsigned long long size;
    unsigned int flags;
    unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

typedef struct {
    unsigned long long offset, size;
    unsigned int flags;
    unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

typedef uint64_t cuuint64_t;

_Static_assert(sizeof(CUuuid) == 16, "CUuuid");
_Static_assert(sizeof(CUmemLocation) == 8, "CUmemLocation");
_Static_assert(sizeof(CUmemAllocationProp) == 32, "CUmemAllocationProp");
_Static_assert(sizeof(CUmemAccessDesc) == 12, "CUmemAccessDesc");
_Static_assert(sizeof(CUctxCreateParams) == 24, "CUctxCreateParams");
_Static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig");
_Static_assert(sizeof(CUarrayMapInfo) == 96, "CUarrayMapInfo");
_Static_assert(sizeof(CUmemPoolProps) == 88, "CUmemPoolProps");
_Static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120, "CUDA_MEM_ALLOC_NODE_PARAMS");
_Static_assert(sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == 32, "CUDA_GRAPH_INSTANTIATE_PARAMS");
_Static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR) == 24, "CUDA_ARRAY_DESCRIPTOR");
_Static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40, "CUDA_ARRAY3D_DESCRIPTOR");
_Static_assert(sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS) == 32, "CUDA_ARRAY_MEMORY_REQUIREMENTS");
_Static_assert(sizeof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC) == 104, "CUDA_EXTERNAL_MEMORY_HANDLE_DESC");
_Static_assert(sizeof(CUDA_EXTERNAL_MEMORY_BUFFER_DESC) == 88, "CUDA_EXTERNAL_MEMORY_BUFFER_DESC");

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
