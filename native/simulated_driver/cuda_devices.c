/* What a device is. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cuda_driver.h"

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (device == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(ordinal))
        return driver_leave(CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    return driver_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (count == NULL)
        return driver_leave(CUDA_ERROR_INVALID_VALUE);
    *count = driver.device_count;
    return driver_leave(CUDA_SUCCESS);
}

/* Checks the arguments that all queries of a device share. */
static CUresult query(const void *answer, CUdevice device)
{
    CUresult result = driver_enter();
    if (result != CUDA_SUCCESS)
        return result;
    driver_leave(CUDA_SUCCESS); /* nothing of a device changes after cuInit */
    if (answer == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    CUresult result = query(name, device);
    if (result != CUDA_SUCCESS)
        return result;
    if (length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)length, "%s", card_of(device)->model->name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    CUresult result = query(uuid, device);
    if (result == CUDA_SUCCESS)
        memcpy(uuid->bytes, card_of(device)->uuid_bytes, sizeof uuid->bytes);
    return result;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult result = query(bytes, device);
    if (result == CUDA_SUCCESS)
        *bytes = card_of(device)->memory_bytes;
    return result;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t total = 0;
    CUresult result = query(bytes, device);
    if (result == CUDA_SUCCESS)
        result = cuDeviceTotalMem_v2(&total, device);
    if (result == CUDA_SUCCESS)
        *bytes = total < UINT_MAX ? (unsigned int)total : UINT_MAX;
    return result;
}

/* Attributes that are the same for every model; 0 answers all that are not listed. */
static int common_attribute(CUdevice_attribute attribute)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return INT_MAX;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 48 * 1024;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: return 64 * 1024;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return INT_MAX;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return 65536;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT: return 512;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 2;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: return 1;
    default: return 0;
    }
}

static int attribute_of(const struct card *card, CUdevice_attribute attribute)
{
    const struct model *model = card->model;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return (int)model->sm_clock_mhz * 1000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return (int)model->memory_clock_mhz * 1000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return (int)model->memory_bus_bits;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return (int)model->multiprocessors;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return (int)model->l2_kib * 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        return (int)model->threads_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        return (int)model->shared_kib * 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return (int)model->shared_block_kib * 1024;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return model->major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return model->minor;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return (int)card->bus;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: return (int)card->device;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: return (int)card->domain;
    default: return common_attribute(attribute);
    }
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult result = query(value, device);
    if (result != CUDA_SUCCESS)
        return result;
    if (attribute < 1)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute_of(card_of(device), attribute);
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    CUresult result = query(major, device);
    if (result != CUDA_SUCCESS)
        return result;
    if (minor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *major = card_of(device)->model->major;
    *minor = card_of(device)->model->minor;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *bus_id, int length, CUdevice device)
{
    CUresult result = query(bus_id, device);
    if (result != CUDA_SUCCESS)
        return result;
    if (length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    const struct card *card = card_of(device);
    snprintf(bus_id, (size_t)length, "%04x:%02x:%02x.0", card->domain, card->bus, card->device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *bus_id)
{
    unsigned domain, bus, slot;
    CUresult result = query(device, 0);
    if (result != CUDA_SUCCESS)
        return result;
    if (bus_id == NULL || sscanf(bus_id, "%8x:%2x:%2x", &domain, &bus, &slot) != 3)
        return CUDA_ERROR_INVALID_VALUE;
    for (CUdevice i = 0; i < driver.device_count; i++)
        if (card_of(i)->domain == domain && card_of(i)->bus == bus && card_of(i)->device == slot) {
            *device = i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *can_access, CUdevice device, CUdevice peer)
{
    CUresult result = query(can_access, device);
    if (result == CUDA_SUCCESS)
        result = query(can_access, peer);
    if (result == CUDA_SUCCESS)
        *can_access = 0;
    return result;
}
