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

typedef uint64_t cuuint64_t;

_Static_assert(sizeof(CUuuid) == 16, "CUuuid");
_Static_assert(sizeof(CUmemLocation) == 8, "CUmemLocation");
_Static_assert(sizeof(CUmemAllocationProp) == 32, "CUmemAllocationProp");
_Static_assert(sizeof(CUmemAccessDesc) == 12, "CUmemAccessDesc");
_Static_assert(sizeof(CUctxCreateParams) == 24, "CUctxCreateParams");
_Static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig");

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
CUDA_API_TWIN(cuLaunchKernel, cuLaunchKernel_ptsz)
CUDA_API_TWIN(cuLaunchKernelEx, cuLaunchKernelEx_ptsz)

/* Streams and events */
CUDA_API(cuStreamCreate, CUstream *stream, unsigned int flags)
CUDA_API(cuStreamCreateWithPriority, CUstream *stream, unsigned int flags, int priority)
CUDA_API(cuStreamDestroy, CUstream stream)
CUDA_API(cuStreamDestroy_v2, CUstream stream)
CUDA_API(cuStreamQuery, CUstream stream)
CUDA_API(cuStreamSynchronize, CUstream stream)
CUDA_API(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned int flags)
CUDA_API(cuEventCreate, CUevent *event, unsigned int flags)
CUDA_API(cuEventDestroy, CUevent event)
CUDA_API(cuEventDestroy_v2, CUevent event)
CUDA_API(cuEventRecord, CUevent event, CUstream stream)
CUDA_API(cuEventQuery, CUevent event)
CUDA_API(cuEventSynchronize, CUevent event)
CUDA_API(cuEventElapsedTime, float *milliseconds, CUevent start, CUevent end)
CUDA_API(cuEventElapsedTime_v2, float *milliseconds, CUevent start, CUevent end)
CUDA_API_TWIN(cuStreamQuery, cuStreamQuery_ptsz)
CUDA_API_TWIN(cuStreamSynchronize, cuStreamSynchronize_ptsz)
CUDA_API_TWIN(cuStreamWaitEvent, cuStreamWaitEvent_ptsz)
CUDA_API_TWIN(cuEventRecord, cuEventRecord_ptsz)

#endif
