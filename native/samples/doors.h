/* The driver's functions that the samples call, found through the door the program was built with:
 * linked, dlsym or cuGetProcAddress. */
#ifndef CASABA_SAMPLES_DOORS_H
#define CASABA_SAMPLES_DOORS_H

#include "cuda_api.h"

enum { MIB = 1 << 20 };

/* F(symbol, base name, CUDA version since which the base name means it) */
#define SAMPLE_FUNCTIONS(F)                                       \
    F(cuInit, cuInit, 2000)                                       \
    F(cuGetErrorName, cuGetErrorName, 6000)                       \
    F(cuDeviceGetCount, cuDeviceGetCount, 2000)                   \
    F(cuDeviceGetName, cuDeviceGetName, 2000)                     \
    F(cuDeviceGetUuid, cuDeviceGetUuid, 9020)                     \
    F(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010)             \
    F(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020)                \
    F(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000)           \
    F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)   \
    F(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000) \
    F(cuCtxSetCurrent, cuCtxSetCurrent, 4000)                     \
    F(cuMemGetInfo_v2, cuMemGetInfo, 3020)                        \
    F(cuMemAlloc_v2, cuMemAlloc, 3020)                            \
    F(cuMemAllocPitch_v2, cuMemAllocPitch, 3020)                  \
    F(cuMemAllocManaged, cuMemAllocManaged, 6000)                 \
    F(cuMemFree_v2, cuMemFree, 3020)                              \
    F(cuMemAddressReserve, cuMemAddressReserve, 10020)            \
    F(cuMemAddressFree, cuMemAddressFree, 10020)                  \
    F(cuMemCreate, cuMemCreate, 10020)                            \
    F(cuMemRelease, cuMemRelease, 10020)                          \
    F(cuMemMap, cuMemMap, 10020)                                  \
    F(cuMemUnmap, cuMemUnmap, 10020)                              \
    F(cuMemSetAccess, cuMemSetAccess, 10020)                      \
    F(cuMemsetD8_v2, cuMemsetD8, 3020)                            \
    F(cuMemcpyHtoD_v2, cuMemcpyHtoD, 3020)                        \
    F(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020)                        \
    F(cuModuleLoadData, cuModuleLoadData, 2000)                   \
    F(cuModuleGetFunction, cuModuleGetFunction, 2000)             \
    F(cuLaunchKernel, cuLaunchKernel, 4000)                       \
    F(cuStreamCreate, cuStreamCreate, 2000)                       \
    F(cuStreamSynchronize, cuStreamSynchronize, 2000)

struct doors {
#define MEMBER(symbol, base, version) symbol##_fn *symbol;
    SAMPLE_FUNCTIONS(MEMBER)
#undef MEMBER
};

extern struct doors cuda;

/* Fills `cuda`; ends the program with a message and exit code 2 when the driver is not there. */
void doors_open(void);

/* The same, and cuInit, and the device's primary context made current. */
void doors_open_device(int device);

/* Ends the program with a message and exit code 1 unless the result is a success. */
void must(CUresult result, const char *what);

const char *result_name(CUresult result);

#endif
