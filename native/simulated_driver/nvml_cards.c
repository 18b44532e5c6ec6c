/* What a card is and how it is set: nothing here changes. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "nvml_driver.h"

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, name, &card);
    return result == NVML_SUCCESS ? nvml_text(name, length, card->model->name) : result;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, uuid, &card);
    return result == NVML_SUCCESS ? nvml_text(uuid, length, card->uuid) : result;
}

/* The last digits of the UUID: one serial a card. */
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
    char text[32];
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, serial, &card);
    if (result != NVML_SUCCESS)
        return result;
    const uint8_t *end = &card->uuid_bytes[12];
    unsigned number = (unsigned)end[0] << 24 | (unsigned)end[1] << 16 | (unsigned)end[2] << 8 | end[3];
    snprintf(text, sizeof text, "%013u", number);
    return nvml_text(serial, length, text);
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, version, &card);
    return result == NVML_SUCCESS ? nvml_text(version, length, "00.00.00.00.00") : result;
}

static unsigned index_of(const struct card *card)
{
    unsigned index = 0;
    while (&nvml.host.cards[nvml.visible[index]] != card)
        index++;
    return index;
}

NVML_ANSWER(nvmlDeviceGetIndex, unsigned int, index_of(card))
NVML_ANSWER(nvmlDeviceGetMinorNumber, unsigned int, card->minor)
NVML_ANSWER(nvmlDeviceGetBrand, nvmlEnum_t, NVML_BRAND_NVIDIA)
NVML_ANSWER(nvmlDeviceGetArchitecture, unsigned int, card->model->architecture)
NVML_ANSWER(nvmlDeviceGetNumGpuCores, unsigned int,
            card->model->multiprocessors * card->model->cores_per_multiprocessor)
NVML_ANSWER(nvmlDeviceGetMemoryBusWidth, unsigned int, card->model->memory_bus_bits)
NVML_ANSWER(nvmlDeviceGetPersistenceMode, nvmlEnum_t, NVML_FEATURE_ENABLED)
NVML_ANSWER(nvmlDeviceGetComputeMode, nvmlEnum_t, NVML_COMPUTEMODE_DEFAULT)
NVML_ANSWER(nvmlDeviceGetDisplayMode, nvmlEnum_t, NVML_FEATURE_DISABLED)
NVML_ANSWER(nvmlDeviceGetDisplayActive, nvmlEnum_t, NVML_FEATURE_DISABLED)
NVML_ANSWER(nvmlDeviceGetPowerManagementMode, nvmlEnum_t, NVML_FEATURE_ENABLED)
NVML_ANSWER(nvmlDeviceGetPowerManagementLimit, unsigned int, card->model->power_limit_mw)
NVML_ANSWER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, card->model->power_limit_mw)
NVML_ANSWER(nvmlDeviceGetEnforcedPowerLimit, unsigned int, card->model->power_limit_mw)
NVML_ANSWER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, card->model->pcie_generation)
NVML_ANSWER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, card->model->pcie_generation)
NVML_ANSWER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, 16)
NVML_ANSWER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, 16)
NVML_ANSWER(nvmlDeviceIsMigDeviceHandle, unsigned int, 0)
NVML_ANSWER(nvmlDeviceGetMaxMigDeviceCount, unsigned int, 0)

/* A query of two numbers. */
#define ANSWER_TWO(name, type, first, second)                      \
    nvmlReturn_t name(nvmlDevice_t device, type *one, type *other) \
    {                                                              \
        const struct card *card;                                   \
        nvmlReturn_t result = nvml_card(device, one, &card);       \
        if (result != NVML_SUCCESS)                                \
            return result;                                         \
        if (other == NULL)                                         \
            return NVML_ERROR_INVALID_ARGUMENT;                    \
        *one = (first);                                            \
        *other = (second);                                         \
        return NVML_SUCCESS;                                       \
    }

ANSWER_TWO(nvmlDeviceGetCudaComputeCapability, int, card->model->major, card->model->minor)
ANSWER_TWO(nvmlDeviceGetEccMode, nvmlEnum_t, NVML_FEATURE_ENABLED, NVML_FEATURE_ENABLED)
ANSWER_TWO(nvmlDeviceGetPowerManagementLimitConstraints, unsigned int,
           card->model->power_limit_mw / 2, card->model->power_limit_mw)

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlEnum_t type, nvmlEnum_t counter,
                                         unsigned long long *count)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, count, &card);
    if (result != NVML_SUCCESS)
        return result;
    if (type < 0 || type > 1 || counter < 0 || counter > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

static void legacy_bus_id(const struct card *card, char text[16])
{
    snprintf(text, 16, "%04x:%02x:%02x.0", card->domain & 0xffff, card->bus & 0xff,
             card->device & 0xff);
}

/* The oldest struct ends after pciDeviceId. */
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, pci, &card);
    if (result != NVML_SUCCESS)
        return result;
    legacy_bus_id(card, pci->busId);
    pci->domain = card->domain;
    pci->bus = card->bus;
    pci->device = card->device;
    pci->pciDeviceId = card->model->pci_device_id;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
    const struct card *card;
    nvmlReturn_t result = nvmlDeviceGetPciInfo(device, pci);
    if (result != NVML_SUCCESS || nvml_card(device, pci, &card) != NVML_SUCCESS)
        return result;
    pci->pciSubSystemId = card->model->pci_subsystem_id;
    memset(pci->reserved, 0, sizeof pci->reserved);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, pci, &card);
    if (result != NVML_SUCCESS)
        return result;
    *pci = (nvmlPciInfo_t){.domain = card->domain, .bus = card->bus, .device = card->device,
                           .pciDeviceId = card->model->pci_device_id,
                           .pciSubSystemId = card->model->pci_subsystem_id};
    legacy_bus_id(card, pci->busIdLegacy);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", card->domain, card->bus,
             card->device);
    return NVML_SUCCESS;
}

/* What these cards, or Linux, do not have. Clients need the names all the same. */
static nvmlReturn_t unsupported(void)
{
    return atomic_load(&nvml.users) == 0 ? NVML_ERROR_UNINITIALIZED : NVML_ERROR_NOT_SUPPORTED;
}

#define UNUSED(type, name) type name __attribute__((unused))
#define UNSUPPORTED_1(name, A) \
    nvmlReturn_t name(UNUSED(A, a)) { return unsupported(); }
#define UNSUPPORTED_2(name, A, B) \
    nvmlReturn_t name(UNUSED(A, a), UNUSED(B, b)) { return unsupported(); }
#define UNSUPPORTED_3(name, A, B, C) \
    nvmlReturn_t name(UNUSED(A, a), UNUSED(B, b), UNUSED(C, c)) { return unsupported(); }

UNSUPPORTED_3(nvmlDeviceGetDriverModel, nvmlDevice_t, nvmlEnum_t *, nvmlEnum_t *)
UNSUPPORTED_3(nvmlDeviceGetDriverModel_v2, nvmlDevice_t, nvmlEnum_t *, nvmlEnum_t *)
UNSUPPORTED_3(nvmlDeviceGetMigMode, nvmlDevice_t, unsigned int *, unsigned int *)
UNSUPPORTED_3(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t, unsigned int, nvmlDevice_t *)
UNSUPPORTED_2(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t, nvmlDevice_t *)
UNSUPPORTED_2(nvmlDeviceGetGpuInstanceId, nvmlDevice_t, unsigned int *)
UNSUPPORTED_2(nvmlDeviceGetComputeInstanceId, nvmlDevice_t, unsigned int *)
UNSUPPORTED_2(nvmlDeviceGetConfComputeMemSizeInfo, nvmlDevice_t, void *)
UNSUPPORTED_2(nvmlDeviceGetFanSpeed, nvmlDevice_t, unsigned int *)
UNSUPPORTED_1(nvmlEventSetCreate, void **)
UNSUPPORTED_1(nvmlEventSetFree, void *)
UNSUPPORTED_3(nvmlDeviceRegisterEvents, nvmlDevice_t, unsigned long long, void *)
UNSUPPORTED_2(nvmlDeviceGetSupportedEventTypes, nvmlDevice_t, unsigned long long *)
