/* Calls that tell how much memory there is: of a limited card, the budgets'. */
#include <limits.h>

#include "account.h"
#include "drivers.h"
#include "keep_errno.h"
#include "membership.h"
#include "placement.h"
#include "pools.h"

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* What the budgets leave of `free_bytes` and `total_bytes`, which are the driver's words. */
static void narrow(const struct card *card, uint64_t *free_bytes, uint64_t *total_bytes) {
    pools_settle();
    struct usage usage = account_usage(card);
    *total_bytes = smaller(usage.limit, *total_bytes);
    *free_bytes = smaller(usage.limit - usage.used, smaller(*free_bytes, *total_bytes));
}

EXPORTED CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuDeviceTotalMem);
    enum stance stance = membership_look();
    if (stance == REFUSING) return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = real(bytes, device);
    if (stance == UNGUARDED || result != CUDA_SUCCESS) return result;
    const struct card *card = placement_of_device(device);
    if (card) *bytes = (unsigned int)smaller(account_usage(card).limit, *bytes);
    return result;
}

EXPORTED CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    KEEP_ERRNO;
    REAL_CUDA(cuDeviceTotalMem_v2);
    enum stance stance = membership_look();
    if (stance == REFUSING) return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = real(bytes, device);
    if (stance == UNGUARDED || result != CUDA_SUCCESS) return result;
    const struct card *card = placement_of_device(device);
    if (card) *bytes = smaller(account_usage(card).limit, *bytes);
    return result;
}

EXPORTED CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total_bytes) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemGetInfo);
    enum stance stance = membership_look();
    if (stance == REFUSING) return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = real(free_bytes, total_bytes);
    if (stance == UNGUARDED || result != CUDA_SUCCESS) return result;
    CUcontext context;
    const struct card *card = placement_of_thread(&context);
    if (!card) return result;
    uint64_t left = free_bytes ? *free_bytes : UINT_MAX;
    uint64_t total = total_bytes ? *total_bytes : UINT_MAX;
    narrow(card, &left, &total);
    if (free_bytes) *free_bytes = (unsigned int)left;
    if (total_bytes) *total_bytes = (unsigned int)total;
    return result;
}

EXPORTED CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    KEEP_ERRNO;
    REAL_CUDA(cuMemGetInfo_v2);
    enum stance stance = membership_look();
    if (stance == REFUSING) return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = real(free_bytes, total_bytes);
    if (stance == UNGUARDED || result != CUDA_SUCCESS) return result;
    CUcontext context;
    const struct card *card = placement_of_thread(&context);
    if (!card) return result;
    uint64_t left = free_bytes ? *free_bytes : UINT64_MAX;
    uint64_t total = total_bytes ? *total_bytes : UINT64_MAX;
    narrow(card, &left, &total);
    if (free_bytes) *free_bytes = left;
    if (total_bytes) *total_bytes = total;
    return result;
}

/* Makes the driver's words about a card those of its budgets. False: the card has none. */
static bool show_budgets(nvmlDevice_t device, nvmlMemory_t *memory) {
    const struct card *card = membership_look() == GUARDED ? placement_of_nvml(device) : NULL;
    if (!card) return false;
    pools_settle();
    struct usage usage = account_usage(card);
    memory->total = smaller(usage.limit, memory->total);
    memory->used = smaller(usage.used, memory->total);
    memory->free = memory->total - memory->used;
    return true;
}

EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    KEEP_ERRNO;
    REAL_NVML(nvmlDeviceGetMemoryInfo);
    nvmlReturn_t result = real(device, memory);
    if (result == NVML_SUCCESS) show_budgets(device, memory);
    return result;
}

/* Budgets have no reserved memory: total is used and free, as in the first form. */
EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    KEEP_ERRNO;
    REAL_NVML(nvmlDeviceGetMemoryInfo_v2);
    nvmlReturn_t result = real(device, memory);
    if (result != NVML_SUCCESS) return result;
    nvmlMemory_t shown = {.total = memory->total};
    if (show_budgets(device, &shown))
        *memory = (nvmlMemory_v2_t){.version = memory->version, .total = shown.total,
                                    .free = shown.free, .used = shown.used};
    return result;
}
