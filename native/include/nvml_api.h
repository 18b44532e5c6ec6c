/* The part of NVML that the guard hooks, the simulated driver implements and the nvidia-smi
 * look-alike calls. Our own declarations, written from the public documentation; binary compatible
 * with NVIDIA's (sizes are asserted below).
 *
 * As in cuda_api.h: names are those in the library, and each function NAME has a type NAME_fn. */
#ifndef CASABA_NVML_API_H
#define CASABA_NVML_API_H

#include <stddef.h>
#include <stdint.h>

#define ERROR(name, value, text) name = value,
typedef enum {
#include "nvml_errors.def"
    NVML_RETURN_FORCE_INT = 0x7fffffff
} nvmlReturn_t;
#undef ERROR

typedef struct nvmlDevice_st *nvmlDevice_t;

/* Enumerated arguments and answers are plain ints here; these are the values that are used. */
typedef int nvmlEnum_t;
enum { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 };
enum { NVML_BRAND_TESLA = 2, NVML_BRAND_NVIDIA = 14 };
enum { NVML_DEVICE_ARCH_TURING = 6, NVML_DEVICE_ARCH_AMPERE = 7, NVML_DEVICE_ARCH_ADA = 8,
       NVML_DEVICE_ARCH_HOPPER = 9 };
enum { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_VIDEO = 3,
       NVML_CLOCK_COUNT = 4 };
enum { NVML_TEMPERATURE_GPU = 0 };
enum { NVML_PSTATE_0 = 0, NVML_PSTATE_8 = 8 };
enum { NVML_COMPUTEMODE_DEFAULT = 0 };

enum {
    NVML_DEVICE_UUID_BUFFER_SIZE = 80,
    NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE = 80,
    NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE = 80,
    NVML_DEVICE_NAME_BUFFER_SIZE = 64,
    NVML_DEVICE_NAME_V2_BUFFER_SIZE = 96,
    NVML_DEVICE_SERIAL_BUFFER_SIZE = 30,
    NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE = 32
};

/* A size or count that NVML does not know. */
#define NVML_VALUE_NOT_AVAILABLE 0xffffffffffffffffull
#define NVML_NO_INSTANCE 0xffffffffu /* of gpuInstanceId and computeInstanceId without MIG */

/* The version word of a versioned struct: its size, and its number in the top byte. */
#define NVML_STRUCT_VERSION(type, number) ((unsigned int)(sizeof(type) | ((number##u) << 24)))

typedef struct {
    unsigned long long total, free, used; /* bytes */
} nvmlMemory_t;

typedef struct {
    unsigned int version; /* in: NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2) */
    unsigned long long total, reserved, free, used; /* bytes; used without reserved */
} nvmlMemory_v2_t;

typedef struct {
    unsigned long long bar1Total, bar1Free, bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
    char busIdLegacy[16]; /* 0000:00:03.0 */
    unsigned int domain, bus, device;
    unsigned int pciDeviceId, pciSubSystemId; /* device id in the upper, vendor in the lower half */
    char busId[32]; /* 00000000:00:03.0 */
} nvmlPciInfo_t; /* of nvmlDeviceGetPciInfo_v3 */

typedef struct {
    char busId[16];
    unsigned int domain, bus, device;
    unsigned int pciDeviceId, pciSubSystemId;
    unsigned int reserved[4];
} nvmlPciInfo_v2_t; /* of nvmlDeviceGetPciInfo_v2; that without a suffix stops after pciDeviceId */

typedef struct {
    unsigned int gpu, memory; /* percent */
} nvmlUtilization_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory; /* bytes */
} nvmlProcessInfo_v1_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory; /* bytes */
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t; /* of the _v2 and _v3 process lists */

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

typedef struct {
    unsigned int version; /* in: NVML_STRUCT_VERSION(nvmlProcessDetailList_v1_t, 1) */
    unsigned int mode;    /* in: 0 compute, 1 graphics, 2 MPS */
    unsigned int numProcArrayEntries; /* in: room; out: count */
    nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_v1_t;

typedef struct {
    unsigned int pid;
    unsigned long long timeStamp; /* microseconds since the epoch */
    unsigned int smUtil, memUtil, encUtil, decUtil; /* percent */
} nvmlProcessUtilizationSample_t;

typedef struct {
    unsigned long long timeStamp; /* microseconds since the epoch */
    unsigned int pid;
    unsigned int smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil; /* percent */
} nvmlProcessUtilizationInfo_v1_t;

typedef struct {
    unsigned int version; /* in: NVML_STRUCT_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1) */
    unsigned int processSamplesCount; /* in: room; out: count */
    unsigned long long lastSeenTimeStamp;
    nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_v1_t;

enum { NVML_GPU_UTILIZATION_SAMPLES = 1 };
enum { NVML_VALUE_TYPE_UNSIGNED_INT = 1 };

typedef struct {
    unsigned long long timeStamp; /* microseconds since the epoch */
    union {
        double dVal;
        unsigned int uiVal;
        unsigned long long ullVal;
    } sampleValue;
} nvmlSample_t;

typedef struct {
    unsigned int version; /* in: NVML_STRUCT_VERSION(nvmlTemperature_v1_t, 1) */
    nvmlEnum_t sensorType;
    int temperature; /* degrees Celsius */
} nvmlTemperature_v1_t;

_Static_assert(sizeof(nvmlMemory_t) == 24, "nvmlMemory_t");
_Static_assert(sizeof(nvmlMemory_v2_t) == 40, "nvmlMemory_v2_t");
_Static_assert(sizeof(nvmlPciInfo_t) == 68, "nvmlPciInfo_t");
_Static_assert(sizeof(nvmlPciInfo_v2_t) == 52, "nvmlPciInfo_v2_t");
_Static_assert(sizeof(nvmlProcessInfo_v1_t) == 16, "nvmlProcessInfo_v1_t");
_Static_assert(sizeof(nvmlProcessInfo_t) == 24, "nvmlProcessInfo_t");
_Static_assert(sizeof(nvmlProcessDetail_v1_t) == 32, "nvmlProcessDetail_v1_t");
_Static_assert(sizeof(nvmlProcessDetailList_v1_t) == 24, "nvmlProcessDetailList_v1_t");
_Static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32, "nvmlProcessUtilizationSample_t");
_Static_assert(sizeof(nvmlProcessUtilizationInfo_v1_t) == 40, "nvmlProcessUtilizationInfo_v1_t");
_Static_assert(sizeof(nvmlSample_t) == 16, "nvmlSample_t");

#define NVML_API(name, ...)                      \
    typedef nvmlReturn_t name##_fn(__VA_ARGS__); \
    extern name##_fn name;
#define NVML_API_TWIN(name, twin) extern name##_fn twin;

/* Start and the system */
NVML_API(nvmlInit, void)
NVML_API(nvmlInitWithFlags, unsigned int flags)
NVML_API_TWIN(nvmlInit, nvmlInit_v2)
NVML_API(nvmlShutdown, void)
typedef const char *nvmlErrorString_fn(nvmlReturn_t result);
extern nvmlErrorString_fn nvmlErrorString;
NVML_API(nvmlSystemGetDriverVersion, char *version, unsigned int length)
NVML_API(nvmlSystemGetNVMLVersion, char *version, unsigned int length)
NVML_API(nvmlSystemGetCudaDriverVersion, int *version)
NVML_API_TWIN(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2)
NVML_API(nvmlSystemGetProcessName, unsigned int pid, char *name, unsigned int length)

/* Finding a card */
NVML_API(nvmlDeviceGetCount, unsigned int *count)
NVML_API_TWIN(nvmlDeviceGetCount, nvmlDeviceGetCount_v2)
NVML_API(nvmlDeviceGetHandleByIndex, unsigned int index, nvmlDevice_t *device)
NVML_API_TWIN(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2)
NVML_API(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *device)
NVML_API(nvmlDeviceGetHandleByPciBusId, const char *bus_id, nvmlDevice_t *device)
NVML_API_TWIN(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2)

/* What a card is */
NVML_API(nvmlDeviceGetName, nvmlDevice_t device, char *name, unsigned int length)
NVML_API(nvmlDeviceGetUUID, nvmlDevice_t device, char *uuid, unsigned int length)
NVML_API(nvmlDeviceGetSerial, nvmlDevice_t device, char *serial, unsigned int length)
NVML_API(nvmlDeviceGetVbiosVersion, nvmlDevice_t device, char *version, unsigned int length)
NVML_API(nvmlDeviceGetIndex, nvmlDevice_t device, unsigned int *index)
NVML_API(nvmlDeviceGetMinorNumber, nvmlDevice_t device, unsigned int *minor)
NVML_API(nvmlDeviceGetBrand, nvmlDevice_t device, nvmlEnum_t *brand)
NVML_API(nvmlDeviceGetArchitecture, nvmlDevice_t device, unsigned int *architecture)
NVML_API(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t device, int *major, int *minor)
NVML_API(nvmlDeviceGetNumGpuCores, nvmlDevice_t device, unsigned int *cores)
NVML_API(nvmlDeviceGetMemoryBusWidth, nvmlDevice_t device, unsigned int *bits)
NVML_API(nvmlDeviceGetPciInfo, nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
NVML_API_TWIN(nvmlDeviceGetPciInfo, nvmlDeviceGetPciInfo_v2)
NVML_API(nvmlDeviceGetPciInfo_v3, nvmlDevice_t device, nvmlPciInfo_t *pci)
NVML_API(nvmlDeviceGetDriverModel, nvmlDevice_t device, nvmlEnum_t *current, nvmlEnum_t *pending)
NVML_API_TWIN(nvmlDeviceGetDriverModel, nvmlDeviceGetDriverModel_v2)

/* Settings of a card */
NVML_API(nvmlDeviceGetPersistenceMode, nvmlDevice_t device, nvmlEnum_t *mode)
NVML_API(nvmlDeviceGetComputeMode, nvmlDevice_t device, nvmlEnum_t *mode)
NVML_API(nvmlDeviceGetDisplayMode, nvmlDevice_t device, nvmlEnum_t *mode)
NVML_API(nvmlDeviceGetDisplayActive, nvmlDevice_t device, nvmlEnum_t *active)
NVML_API(nvmlDeviceGetEccMode, nvmlDevice_t device, nvmlEnum_t *current, nvmlEnum_t *pending)
NVML_API(nvmlDeviceGetTotalEccErrors, nvmlDevice_t device, nvmlEnum_t type, nvmlEnum_t counter,
         unsigned long long *count)
NVML_API(nvmlDeviceGetPowerManagementMode, nvmlDevice_t device, nvmlEnum_t *mode)
NVML_API(nvmlDeviceGetPowerManagementLimit, nvmlDevice_t device, unsigned int *milliwatts)
NVML_API(nvmlDeviceGetPowerManagementDefaultLimit, nvmlDevice_t device, unsigned int *milliwatts)
NVML_API(nvmlDeviceGetPowerManagementLimitConstraints, nvmlDevice_t device, unsigned int *min,
         unsigned int *max)
NVML_API(nvmlDeviceGetEnforcedPowerLimit, nvmlDevice_t device, unsigned int *milliwatts)

/* MIG, which these cards do not have */
NVML_API(nvmlDeviceGetMigMode, nvmlDevice_t device, unsigned int *current, unsigned int *pending)
NVML_API(nvmlDeviceIsMigDeviceHandle, nvmlDevice_t device, unsigned int *is_mig)
NVML_API(nvmlDeviceGetMaxMigDeviceCount, nvmlDevice_t device, unsigned int *count)
NVML_API(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t device, unsigned int index,
         nvmlDevice_t *mig)
NVML_API(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t mig, nvmlDevice_t *device)
NVML_API(nvmlDeviceGetGpuInstanceId, nvmlDevice_t device, unsigned int *id)
NVML_API(nvmlDeviceGetComputeInstanceId, nvmlDevice_t device, unsigned int *id)

/* What a card does now */
NVML_API(nvmlDeviceGetMemoryInfo, nvmlDevice_t device, nvmlMemory_t *memory)
NVML_API(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t device, nvmlMemory_v2_t *memory)
NVML_API(nvmlDeviceGetBAR1MemoryInfo, nvmlDevice_t device, nvmlBAR1Memory_t *memory)
NVML_API(nvmlDeviceGetConfComputeMemSizeInfo, nvmlDevice_t device, void *sizes)
NVML_API(nvmlDeviceGetUtilizationRates, nvmlDevice_t device, nvmlUtilization_t *utilization)
NVML_API(nvmlDeviceGetEncoderUtilization, nvmlDevice_t device, unsigned int *percent,
         unsigned int *period_us)
NVML_API(nvmlDeviceGetDecoderUtilization, nvmlDevice_t device, unsigned int *percent,
         unsigned int *period_us)
NVML_API(nvmlDeviceGetTemperature, nvmlDevice_t device, nvmlEnum_t sensor, unsigned int *celsius)
NVML_API(nvmlDeviceGetTemperatureV, nvmlDevice_t device, nvmlTemperature_v1_t *temperature)
NVML_API(nvmlDeviceGetFanSpeed, nvmlDevice_t device, unsigned int *percent)
NVML_API(nvmlDeviceGetPowerUsage, nvmlDevice_t device, unsigned int *milliwatts)
NVML_API(nvmlDeviceGetPerformanceState, nvmlDevice_t device, nvmlEnum_t *state)
NVML_API(nvmlDeviceGetClockInfo, nvmlDevice_t device, nvmlEnum_t clock, unsigned int *mhz)
NVML_API(nvmlDeviceGetMaxClockInfo, nvmlDevice_t device, nvmlEnum_t clock, unsigned int *mhz)
NVML_API(nvmlDeviceGetPcieThroughput, nvmlDevice_t device, nvmlEnum_t counter,
         unsigned int *kib_per_second)
NVML_API(nvmlDeviceGetMaxPcieLinkGeneration, nvmlDevice_t device, unsigned int *generation)
NVML_API(nvmlDeviceGetCurrPcieLinkGeneration, nvmlDevice_t device, unsigned int *generation)
NVML_API(nvmlDeviceGetMaxPcieLinkWidth, nvmlDevice_t device, unsigned int *width)
NVML_API(nvmlDeviceGetCurrPcieLinkWidth, nvmlDevice_t device, unsigned int *width)

/* Processes on a card: count in: room of the array, out: entries */
NVML_API(nvmlDeviceGetComputeRunningProcesses, nvmlDevice_t device, unsigned int *count,
         nvmlProcessInfo_v1_t *processes)
NVML_API(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDevice_t device, unsigned int *count,
         nvmlProcessInfo_t *processes)
NVML_API_TWIN(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses_v3)
NVML_API_TWIN(nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses)
NVML_API_TWIN(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses_v2)
NVML_API_TWIN(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses_v3)
NVML_API_TWIN(nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetMPSComputeRunningProcesses)
NVML_API_TWIN(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetMPSComputeRunningProcesses_v2)
NVML_API_TWIN(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetMPSComputeRunningProcesses_v3)
NVML_API(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t device,
         nvmlProcessDetailList_v1_t *list)
NVML_API(nvmlDeviceGetProcessUtilization, nvmlDevice_t device,
         nvmlProcessUtilizationSample_t *samples, unsigned int *count,
         unsigned long long last_seen_us)
NVML_API(nvmlDeviceGetProcessesUtilizationInfo, nvmlDevice_t device,
         nvmlProcessesUtilizationInfo_v1_t *answer)
NVML_API(nvmlDeviceGetSamples, nvmlDevice_t device, nvmlEnum_t type,
         unsigned long long last_seen_us, nvmlEnum_t *value_type, unsigned int *count,
         nvmlSample_t *samples)

/* Events, which these cards do not have */
NVML_API(nvmlEventSetCreate, void **set)
NVML_API(nvmlEventSetFree, void *set)
NVML_API(nvmlDeviceRegisterEvents, nvmlDevice_t device, unsigned long long types, void *set)
NVML_API(nvmlDeviceGetSupportedEventTypes, nvmlDevice_t device, unsigned long long *types)

#endif
