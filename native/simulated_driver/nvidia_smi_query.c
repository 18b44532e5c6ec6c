/* --query-gpu=FIELD,... --format=csv[,noheader][,nounits] */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvidia_smi.h"

enum { FIELDS_MAX = 32, BYTES_PER_MIB = 1 << 20 };

static void driver_version(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    (void)card;
    if (smi->nvmlSystemGetDriverVersion(text, TEXT_SIZE) != NVML_SUCCESS)
        strcpy(text, "N/A");
}

static void count(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    (void)card;
    snprintf(text, TEXT_SIZE, "%u", smi->card_count);
}

static void index_of(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    for (unsigned i = 0; i < smi->card_count; i++)
        if (smi_card(smi, i) == card)
            snprintf(text, TEXT_SIZE, "%u", i);
}

static void memory_total(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    snprintf(text, TEXT_SIZE, "%llu", smi_memory(smi, card).total / BYTES_PER_MIB);
}

static void memory_used(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    snprintf(text, TEXT_SIZE, "%llu", smi_memory(smi, card).used / BYTES_PER_MIB);
}

static void memory_free(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    snprintf(text, TEXT_SIZE, "%llu", smi_memory(smi, card).free / BYTES_PER_MIB);
}

static void utilization_gpu(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    nvmlUtilization_t use = {0, 0};
    smi->nvmlDeviceGetUtilizationRates(card, &use);
    snprintf(text, TEXT_SIZE, "%u", use.gpu);
}

static void utilization_memory(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    nvmlUtilization_t use = {0, 0};
    smi->nvmlDeviceGetUtilizationRates(card, &use);
    snprintf(text, TEXT_SIZE, "%u", use.memory);
}

static void temperature(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    unsigned celsius = 0;
    smi->nvmlDeviceGetTemperature(card, NVML_TEMPERATURE_GPU, &celsius);
    snprintf(text, TEXT_SIZE, "%u", celsius);
}

static void power_draw(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    unsigned milliwatts = 0;
    smi->nvmlDeviceGetPowerUsage(card, &milliwatts);
    snprintf(text, TEXT_SIZE, "%.2f", milliwatts / 1000.0);
}

static void power_limit(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    unsigned milliwatts = 0;
    smi->nvmlDeviceGetEnforcedPowerLimit(card, &milliwatts);
    snprintf(text, TEXT_SIZE, "%.2f", milliwatts / 1000.0);
}

static void compute_capability(const struct smi *smi, nvmlDevice_t card, char text[TEXT_SIZE])
{
    int major = 0, minor = 0;
    smi->nvmlDeviceGetCudaComputeCapability(card, &major, &minor);
    snprintf(text, TEXT_SIZE, "%d.%d", major, minor);
}

static const struct field {
    const char *name, *unit;
    smi_cell *cell;
} fields[] = {
    {"index", NULL, index_of},
    {"count", NULL, count},
    {"name", NULL, smi_name},
    {"gpu_name", NULL, smi_name},
    {"uuid", NULL, smi_uuid},
    {"gpu_uuid", NULL, smi_uuid},
    {"driver_version", NULL, driver_version},
    {"pci.bus_id", NULL, smi_bus_id},
    {"memory.total", "MiB", memory_total},
    {"memory.used", "MiB", memory_used},
    {"memory.free", "MiB", memory_free},
    {"utilization.gpu", "%", utilization_gpu},
    {"utilization.memory", "%", utilization_memory},
    {"temperature.gpu", NULL, temperature},
    {"power.draw", "W", power_draw},
    {"power.limit", "W", power_limit},
    {"compute_cap", NULL, compute_capability},
};

enum { FIELD_COUNT = sizeof fields / sizeof fields[0] };

static const struct field *find_field(const char *name)
{
    for (unsigned i = 0; i < FIELD_COUNT; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    fprintf(stderr, "nvidia-smi: --query-gpu: '%s' is not a field; there are:", name);
    for (unsigned i = 0; i < FIELD_COUNT; i++)
        fprintf(stderr, " %s", fields[i].name);
    fputc('\n', stderr);
    return NULL;
}

/* The fields named in `text`; 0 when one is not known. */
static unsigned parse_fields(const char *text, const struct field *chosen[FIELDS_MAX])
{
    char copy[1024], *rest = NULL;
    unsigned chosen_count = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *name = strtok_r(copy, ", ", &rest); name != NULL && chosen_count < FIELDS_MAX;
         name = strtok_r(NULL, ", ", &rest)) {
        chosen[chosen_count] = find_field(name);
        if (chosen[chosen_count++] == NULL)
            return 0;
    }
    return chosen_count;
}

static bool parse_format(const char *text, bool *header, bool *units)
{
    char copy[64], *rest = NULL;
    bool csv = false;
    snprintf(copy, sizeof copy, "%s", text == NULL ? "" : text);
    for (char *word = strtok_r(copy, ", ", &rest); word != NULL;
         word = strtok_r(NULL, ", ", &rest)) {
        if (strcmp(word, "csv") == 0)
            csv = true;
        else if (strcmp(word, "noheader") == 0)
            *header = false;
        else if (strcmp(word, "nounits") == 0)
            *units = false;
        else
            return false;
    }
    return csv;
}

static void print_header(const struct field *const *chosen, unsigned chosen_count)
{
    for (unsigned i = 0; i < chosen_count; i++) {
        printf(i == 0 ? "%s" : ", %s", chosen[i]->name);
        if (chosen[i]->unit != NULL)
            printf(" [%s]", chosen[i]->unit);
    }
    putchar('\n');
}

static void print_row(const struct smi *smi, nvmlDevice_t card, const struct field *const *chosen,
                      unsigned chosen_count, bool units)
{
    for (unsigned i = 0; i < chosen_count; i++) {
        char text[TEXT_SIZE] = "N/A";
        chosen[i]->cell(smi, card, text);
        printf(i == 0 ? "%s" : ", %s", text);
        if (units && chosen[i]->unit != NULL)
            printf(" %s", chosen[i]->unit);
    }
    putchar('\n');
}

int smi_print_query(const struct smi *smi, const char *text, const char *format)
{
    const struct field *chosen[FIELDS_MAX];
    bool header = true, units = true;
    if (!parse_format(format, &header, &units)) {
        fprintf(stderr, "nvidia-smi: --format=%s: give csv[,noheader][,nounits]\n",
                format == NULL ? "" : format);
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    unsigned chosen_count = parse_fields(text, chosen);
    if (chosen_count == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (header)
        print_header(chosen, chosen_count);
    for (unsigned i = 0; i < smi->card_count; i++)
        print_row(smi, smi_card(smi, i), chosen, chosen_count, units);
    return NVML_SUCCESS;
}
