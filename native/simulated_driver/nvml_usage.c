/* What a card does now: memory, processes, activity. */
#include <string.h>

#include "nvml_driver.h"

enum { PROCESSES_MAX = 1024, IDLE_CELSIUS = 35, IDLE_POWER_PART = 10 };

static unsigned number_of(const struct card *card)
{
    return (unsigned)(card - nvml.host.cards);
}

static nvmlReturn_t used_bytes(const struct card *card, unsigned long long *bytes)
{
    pthread_mutex_lock(&nvml.lock);
    struct account *account = nvml_account();
    if (account != NULL)
        *bytes = account_used(account, number_of(card));
    pthread_mutex_unlock(&nvml.lock);
    return account != NULL ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, memory, &card);
    if (result != NVML_SUCCESS)
        return result;
    memory->total = card->memory_bytes;
    result = used_bytes(card, &memory->used);
    memory->free = memory->total - memory->used;
    return result;
}

/* A virtual card reserves nothing for itself. */
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlMemory_t simple = {0, 0, 0};
    nvmlReturn_t result = nvml_check(memory);
    if (result != NVML_SUCCESS)
        return result;
    if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    result = nvmlDeviceGetMemoryInfo(device, &simple);
    if (result != NVML_SUCCESS)
        return result;
    memory->total = simple.total;
    memory->reserved = 0;
    memory->free = simple.free;
    memory->used = simple.used;
    return NVML_SUCCESS;
}

/* The window on the card's memory is the next power of two above it, and unused. */
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, memory, &card);
    if (result != NVML_SUCCESS)
        return result;
    unsigned long long size = MIB;
    while (size < card->memory_bytes)
        size *= 2;
    *memory = (nvmlBAR1Memory_t){.bar1Total = size, .bar1Free = size, .bar1Used = 0};
    return NVML_SUCCESS;
}

/* Processes that the caller's PID namespace cannot see are left out: a number from another namespace
 * would name a stranger. Their memory is in the card's total all the same. */
static nvmlReturn_t list_processes(const struct card *card, struct card_process *processes,
                                   unsigned *count)
{
    pthread_mutex_lock(&nvml.lock);
    struct account *account = nvml_account();
    *count = account == NULL
                 ? 0
                 : account_processes(account, number_of(card), processes, PROCESSES_MAX);
    pthread_mutex_unlock(&nvml.lock);
    return account != NULL ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

/* The part that all forms of the list share: *count in: room, out: how many there are. */
static nvmlReturn_t running(nvmlDevice_t device, unsigned *count, const void *array,
                            struct card_process *processes)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, count, &card);
    if (result != NVML_SUCCESS)
        return result;
    unsigned room = *count;
    if (room > 0 && array == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    result = list_processes(card, processes, count);
    return result == NVML_SUCCESS && *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : result;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                  nvmlProcessInfo_v1_t *array)
{
    struct card_process processes[PROCESSES_MAX];
    nvmlReturn_t result = running(device, count, array, processes);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
        array[i] = (nvmlProcessInfo_v1_t){processes[i].pid, processes[i].bytes};
    return result;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *array)
{
    struct card_process processes[PROCESSES_MAX];
    nvmlReturn_t result = running(device, count, array, processes);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
        array[i] = (nvmlProcessInfo_t){processes[i].pid, processes[i].bytes, NVML_NO_INSTANCE,
                                       NVML_NO_INSTANCE};
    return result;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *array)
{
    return nvmlDeviceGetComputeRunningProcesses_v2(device, count, array);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                   nvmlProcessDetailList_v1_t *list)
{
    struct card_process processes[PROCESSES_MAX];
    nvmlReturn_t result = nvml_check(list);
    if (result != NVML_SUCCESS)
        return result;
    if (list->version != NVML_STRUCT_VERSION(nvmlProcessDetailList_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (list->mode != 0) { /* graphics and MPS */
        list->numProcArrayEntries = 0;
        return NVML_SUCCESS;
    }
    result = running(device, &list->numProcArrayEntries, list->procArray, processes);
    for (unsigned i = 0; result == NVML_SUCCESS && i < list->numProcArrayEntries; i++)
        list->procArray[i] = (nvmlProcessDetail_v1_t){processes[i].pid, processes[i].bytes,
                                                      NVML_NO_INSTANCE, NVML_NO_INSTANCE, 0};
    return result;
}

/* Nothing draws, and there is no MPS server. */
#define NO_PROCESSES(name, type)                                                 \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, type *processes) \
    {                                                                            \
        const struct card *card;                                                 \
        nvmlReturn_t result = nvml_card(device, count, &card);                   \
        (void)processes;                                                         \
        if (result == NVML_SUCCESS)                                              \
            *count = 0;                                                          \
        return result;                                                           \
    }

NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

NVML_ANSWER(nvmlDeviceGetPowerUsage, unsigned int, card->model->power_limit_mw / IDLE_POWER_PART)
NVML_ANSWER(nvmlDeviceGetPerformanceState, nvmlEnum_t, NVML_PSTATE_0)

static nvmlReturn_t coder_utilization(nvmlDevice_t device, unsigned *percent, unsigned *period_us)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, percent, &card);
    if (result != NVML_SUCCESS)
        return result;
    if (period_us == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *percent = 0;
    *period_us = 167000;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                             unsigned int *period_us)
{
    return coder_utilization(device, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                             unsigned int *period_us)
{
    return coder_utilization(device, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlEnum_t sensor,
                                      unsigned int *celsius)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, celsius, &card);
    if (result != NVML_SUCCESS)
        return result;
    if (sensor != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    *celsius = IDLE_CELSIUS;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t *temperature)
{
    unsigned celsius = 0;
    nvmlReturn_t result = nvml_check(temperature);
    if (result != NVML_SUCCESS)
        return result;
    if (temperature->version != NVML_STRUCT_VERSION(nvmlTemperature_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    result = nvmlDeviceGetTemperature(device, temperature->sensorType, &celsius);
    if (result == NVML_SUCCESS)
        temperature->temperature = (int)celsius;
    return result;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlEnum_t clock, unsigned int *mhz)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, mhz, &card);
    if (result != NVML_SUCCESS)
        return result;
    if (clock < 0 || clock >= NVML_CLOCK_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    *mhz = clock == NVML_CLOCK_MEM ? card->model->memory_clock_mhz : card->model->sm_clock_mhz;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlEnum_t clock, unsigned int *mhz)
{
    return nvmlDeviceGetMaxClockInfo(device, clock, mhz);
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlEnum_t counter,
                                         unsigned int *kib_per_second)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, kib_per_second, &card);
    if (result != NVML_SUCCESS)
        return result;
    if (counter < 0 || counter > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    *kib_per_second = 0;
    return NVML_SUCCESS;
}
