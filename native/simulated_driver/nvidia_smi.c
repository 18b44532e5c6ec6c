/* Options, loading NVML, and the list of cards. */
#define _GNU_SOURCE
#include "nvidia_smi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: nvidia-smi [-L | --query-gpu=FIELD,... --format=csv[,noheader][,nounits] | --busy]\n"
    "Shows the cards that NVML reports. Exit code: NVML's, 0 for success.\n";

nvmlDevice_t smi_card(const struct smi *smi, unsigned index)
{
    nvmlDevice_t card = NULL;
    smi->nvmlDeviceGetHandleByIndex_v2(index, &card);
    return card;
}

void smi_name(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    if (smi->nvmlDeviceGetName(card, text, TEXT_SIZE) != NVML_SUCCESS)
        strcpy(text, "N/A");
}

void smi_uuid(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    if (smi->nvmlDeviceGetUUID(card, text, TEXT_SIZE) != NVML_SUCCESS)
        strcpy(text, "N/A");
}

void smi_bus_id(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    nvmlPciInfo_t pci;
    bool known = smi->nvmlDeviceGetPciInfo_v3(card, &pci) == NVML_SUCCESS;
    snprintf(text, TEXT_SIZE, "%s", known ? pci.busId : "N/A");
}

nvmlMemory_v2_t smi_memory(const struct smi *smi, nvmlDevice_t card)
{
    nvmlMemory_v2_t memory = {.version = NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)};
    smi->nvmlDeviceGetMemoryInfo_v2(card, &memory);
    return memory;
}

static bool find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    if (address == NULL)
        fprintf(stderr, "nvidia-smi: libnvidia-ml.so.1 has no %s: the driver is too old\n", name);
    return address != NULL;
}

static nvmlReturn_t load(struct smi *smi)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr,
                "nvidia-smi: NVML cannot be loaded: %s\n"
                "Is the driver installed, and its folder known to ldconfig or in LD_LIBRARY_PATH?\n",
                dlerror());
        return NVML_ERROR_LIBRARY_NOT_FOUND;
    }
#define FIND(name, type) \
    if (!find(library, #name, &smi->name)) \
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    SMI_FUNCTIONS(FIND)
#undef FIND
    void *busy = dlsym(library, "casabaSimulatedBusy");
    memcpy(&smi->busy, &busy, sizeof busy);
    return NVML_SUCCESS;
}

static nvmlReturn_t start(struct smi *smi)
{
    nvmlReturn_t result = load(smi);
    if (result != NVML_SUCCESS)
        return result;
    setenv("CASABA_SIMULATED_VERBOSE", "1", 1); /* the virtual driver then says why it fails */
    result = smi->nvmlInit_v2();
    if (result == NVML_SUCCESS)
        result = smi->nvmlDeviceGetCount_v2(&smi->card_count);
    if (result != NVML_SUCCESS)
        fprintf(stderr, "nvidia-smi: the driver does not answer: %s\n",
                smi->nvmlErrorString(result));
    return result;
}

static void print_list(const struct smi *smi)
{
    char name[TEXT_SIZE], uuid[TEXT_SIZE];
    for (unsigned i = 0; i < smi->card_count; i++) {
        smi_name(smi, smi_card(smi, i), name);
        smi_uuid(smi, smi_card(smi, i), uuid);
        printf("GPU %u: %s (UUID: %s)\n", i, name, uuid);
    }
}

/* The value of --NAME=VALUE, else NULL. */
static const char *value_of(const char *argument, const char *option)
{
    size_t length = strlen(option);
    return strncmp(argument, option, length) == 0 ? argument + length : NULL;
}

int main(int count, char **arguments)
{
    const char *fields = NULL, *format = NULL, *value;
    bool list = false, busy = false;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "-L") == 0 || strcmp(arguments[i], "--list-gpus") == 0) {
            list = true;
        } else if (strcmp(arguments[i], "--busy") == 0) {
            busy = true;
        } else if ((value = value_of(arguments[i], "--query-gpu=")) != NULL) {
            fields = value;
        } else if ((value = value_of(arguments[i], "--format=")) != NULL) {
            format = value;
        } else {
            bool help = strcmp(arguments[i], "-h") == 0 || strcmp(arguments[i], "--help") == 0;
            if (!help)
                fprintf(stderr, "nvidia-smi: '%s' is not an option\n", arguments[i]);
            fputs(usage, help ? stdout : stderr);
            return help ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
        }
    }
    struct smi smi = {.card_count = 0};
    nvmlReturn_t result = start(&smi);
    if (result != NVML_SUCCESS)
        return (int)result;
    if (fields != NULL)
        return smi_print_query(&smi, fields, format);
    if (busy)
        return smi_print_busy(&smi);
    if (list)
        print_list(&smi);
    else
        smi_print_table(&smi);
    return NVML_SUCCESS;
}
