/* A look-alike of nvidia-smi that asks only NVML, so what it shows is what any NVML client sees. */
#ifndef CASABA_NVIDIA_SMI_H
#define CASABA_NVIDIA_SMI_H

#include <stdbool.h>

#include "nvml_api.h"
#include "simulated_busy.h"

/* The functions it uses, all found with dlsym. */
#define SMI_FUNCTIONS(F)                                                                          \
    F(nvmlInit_v2, nvmlInit) F(nvmlErrorString, nvmlErrorString)                                  \
    F(nvmlSystemGetDriverVersion, nvmlSystemGetDriverVersion)                                     \
    F(nvmlSystemGetCudaDriverVersion_v2, nvmlSystemGetCudaDriverVersion)                          \
    F(nvmlSystemGetProcessName, nvmlSystemGetProcessName)                                         \
    F(nvmlDeviceGetCount_v2, nvmlDeviceGetCount)                                                  \
    F(nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetHandleByIndex)                                  \
    F(nvmlDeviceGetName, nvmlDeviceGetName) F(nvmlDeviceGetUUID, nvmlDeviceGetUUID)               \
    F(nvmlDeviceGetPciInfo_v3, nvmlDeviceGetPciInfo_v3)                                           \
    F(nvmlDeviceGetPersistenceMode, nvmlDeviceGetPersistenceMode)                                 \
    F(nvmlDeviceGetDisplayActive, nvmlDeviceGetDisplayActive)                                     \
    F(nvmlDeviceGetComputeMode, nvmlDeviceGetComputeMode)                                         \
    F(nvmlDeviceGetFanSpeed, nvmlDeviceGetFanSpeed)                                               \
    F(nvmlDeviceGetTemperature, nvmlDeviceGetTemperature)                                         \
    F(nvmlDeviceGetPerformanceState, nvmlDeviceGetPerformanceState)                               \
    F(nvmlDeviceGetPowerUsage, nvmlDeviceGetPowerUsage)                                           \
    F(nvmlDeviceGetEnforcedPowerLimit, nvmlDeviceGetEnforcedPowerLimit)                           \
    F(nvmlDeviceGetTotalEccErrors, nvmlDeviceGetTotalEccErrors)                                   \
    F(nvmlDeviceGetMigMode, nvmlDeviceGetMigMode)                                                 \
    F(nvmlDeviceGetCudaComputeCapability, nvmlDeviceGetCudaComputeCapability)                     \
    F(nvmlDeviceGetMemoryInfo_v2, nvmlDeviceGetMemoryInfo_v2)                                     \
    F(nvmlDeviceGetUtilizationRates, nvmlDeviceGetUtilizationRates)                               \
    F(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetComputeRunningProcesses_v2)

struct smi {
#define MEMBER(name, type) type##_fn *name;
    SMI_FUNCTIONS(MEMBER)
#undef MEMBER
    unsigned card_count;
    casabaSimulatedBusy_fn *busy; /* NULL: not a simulated driver */
};

enum { TEXT_SIZE = 128 };

nvmlDevice_t smi_card(const struct smi *smi, unsigned index);

/* Each writes one cell, "N/A" where NVML does not say. */
typedef void smi_cell(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE]);
smi_cell smi_name, smi_uuid, smi_bus_id;

/* The answer, zeroes when there is none. */
nvmlMemory_v2_t smi_memory(const struct smi *smi, nvmlDevice_t card);

void smi_print_table(const struct smi *smi);
/* The cards' own account of their time, where the driver is a simulated one. */
int smi_print_busy(const struct smi *smi);
int smi_print_query(const struct smi *smi, const char *fields, const char *format);

#endif
