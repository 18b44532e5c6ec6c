#include "cards_keys.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml_api.h"

#define MODEL(identifier, ...) {.id = #identifier, __VA_ARGS__},
static const struct model models[] = {
#include "models.def"
};
#undef MODEL

enum { MODEL_COUNT = sizeof models / sizeof models[0] };
enum { KERNEL_MAX_US = 60000000, SAMPLED_MAX_MS = 2500, NVML_DELAY_MAX_MS = 60000,
       COUNT_MAX = 1000000000 };

static bool parse_number(const char *text, unsigned long most, unsigned long *number)
{
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)text[0]))
        return false;
    *number = strtoul(text, &end, 10);
    return errno == 0 && *end == '\0' && *number <= most;
}

static int hex_digit(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    if (character >= 'a' && character <= 'f')
        return character - 'a' + 10;
    return -1;
}

static bool parse_uuid(const char *text, uint8_t bytes[16])
{
    static const char form[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    unsigned digits = 0;
    if (strlen(text) != sizeof form - 1)
        return false;
    for (size_t i = 0; form[i] != '\0'; i++) {
        int digit = hex_digit(text[i]);
        if (form[i] != 'x' ? text[i] != form[i] : digit < 0)
            return false;
        if (form[i] != 'x')
            continue;
        bytes[digits / 2] = (uint8_t)(digits % 2 == 0 ? digit << 4 : bytes[digits / 2] | digit);
        digits++;
    }
    return true;
}

static bool set_driver_version(struct host *host, struct card *card, const char *value)
{
    (void)card;
    size_t length = strlen(value);
    if (length == 0 || length >= sizeof host->driver_version ||
        strspn(value, "0123456789.") != length)
        return false;
    memcpy(host->driver_version, value, length + 1);
    return true;
}

static bool set_cuda_version(struct host *host, struct card *card, const char *value)
{
    (void)card;
    unsigned long number;
    if (!parse_number(value, 99990, &number) || number < 2000)
        return false;
    host->cuda_version = (int)number;
    return true;
}

static bool set_device_nodes(struct host *host, struct card *card, const char *value)
{
    (void)card;
    host->nodes_when_present = strcmp(value, "when_present") == 0;
    return host->nodes_when_present || strcmp(value, "ignored") == 0;
}

static bool set_slice(struct host *host, struct card *card, const char *value)
{
    (void)card;
    unsigned long number;
    if (!parse_number(value, 1000000, &number) || number == 0)
        return false;
    host->slice_ns = (uint64_t)number * 1000;
    return true;
}

static bool set_kernel(struct host *host, struct card *card, const char *value)
{
    (void)card;
    unsigned long number;
    if (!parse_number(value, KERNEL_MAX_US, &number))
        return false;
    host->kernel_ns = (uint64_t)number * 1000;
    return true;
}

static bool parse_samples(const char *value, unsigned *samples)
{
    unsigned long number;
    if (!parse_number(value, SAMPLED_MAX_MS, &number))
        return false;
    *samples = (unsigned)((number * 6 + 500) / 1000);
    return true;
}

static bool set_window(struct host *host, struct card *card, const char *value)
{
    (void)card;
    return parse_samples(value, &host->window_samples) && host->window_samples > 0;
}

static bool set_lag(struct host *host, struct card *card, const char *value)
{
    (void)card;
    return parse_samples(value, &host->lag_samples);
}

static bool parse_unsigned(const char *value, unsigned long most, unsigned *number)
{
    unsigned long wide;
    if (!parse_number(value, most, &wide))
        return false;
    *number = (unsigned)wide;
    return true;
}

static bool set_nvml_delay(struct host *host, struct card *card, const char *value)
{
    (void)card;
    return parse_unsigned(value, NVML_DELAY_MAX_MS, &host->nvml_delay_ms);
}

static bool set_nvml_absent(struct host *host, struct card *card, const char *value)
{
    (void)card;
    host->nvml_absent = strcmp(value, "yes") == 0;
    return host->nvml_absent || strcmp(value, "no") == 0;
}

static bool set_alloc_fails(struct host *host, struct card *card, const char *value)
{
    (void)card;
    return parse_unsigned(value, COUNT_MAX, &host->alloc_fails_every);
}

static bool set_fails_after(struct host *host, struct card *card, const char *value)
{
    (void)card;
    return parse_unsigned(value, COUNT_MAX, &host->fails_after_launches);
}

static bool set_model(struct host *host, struct card *card, const char *value)
{
    (void)host;
    for (unsigned i = 0; i < MODEL_COUNT; i++)
        if (strcmp(models[i].id, value) == 0)
            card->model = &models[i];
    return card->model != NULL;
}

static bool set_uuid(struct host *host, struct card *card, const char *value)
{
    (void)host;
    if (!parse_uuid(value, card->uuid_bytes))
        return false;
    memcpy(card->uuid, value, strlen(value) + 1);
    return true;
}

static bool set_bus_id(struct host *host, struct card *card, const char *value)
{
    (void)host;
    int end = 0;
    return sscanf(value, "%8x:%2x:%2x.0%n", &card->domain, &card->bus, &card->device, &end) == 3 &&
           end > 0 && value[end] == '\0';
}

static bool set_minor(struct host *host, struct card *card, const char *value)
{
    (void)host;
    unsigned long number;
    if (!parse_number(value, 255, &number))
        return false;
    card->minor = (unsigned)number;
    return true;
}

static bool set_memory(struct host *host, struct card *card, const char *value)
{
    (void)host;
    unsigned long number;
    if (!parse_number(value, 1UL << 24, &number) || number == 0)
        return false;
    card->memory_bytes = (uint64_t)number * MIB;
    return true;
}

static bool set_context(struct host *host, struct card *card, const char *value)
{
    (void)host;
    unsigned long number;
    if (!parse_number(value, 1UL << 16, &number))
        return false;
    card->context_bytes = (uint64_t)number * MIB;
    return true;
}

const struct key keys[KEY_COUNT] = {
    [KEY_DRIVER_VERSION] = {"driver_version", false, true, set_driver_version,
                            "a version such as 580.126.09"},
    [KEY_CUDA_VERSION] = {"cuda_version", false, true, set_cuda_version,
                          "major * 1000 + minor * 10, such as 13000"},
    [KEY_DEVICE_NODES] = {"device_nodes", false, false, set_device_nodes,
                          "ignored or when_present"},
    [KEY_SLICE] = {"slice_us", false, false, set_slice, "microseconds from 1 to 1000000"},
    [KEY_KERNEL] = {"kernel_us", false, false, set_kernel, "microseconds up to 60000000"},
    [KEY_WINDOW] = {"utilization_window_ms", false, false, set_window,
                    "milliseconds from 84 to 2500"},
    [KEY_LAG] = {"utilization_lag_ms", false, false, set_lag, "milliseconds up to 2500"},
    [KEY_NVML_DELAY] = {"nvml_delay_ms", false, false, set_nvml_delay, "milliseconds up to 60000"},
    [KEY_NVML_ABSENT] = {"nvml_absent", false, false, set_nvml_absent, "yes or no"},
    [KEY_ALLOC_FAILS] = {"alloc_fails_every", false, false, set_alloc_fails, "a number, 0: never"},
    [KEY_FAILS_AFTER] = {"fails_after_launches", false, false, set_fails_after,
                         "a number, 0: never"},
    [KEY_MODEL] = {"model", true, true, set_model, "A10, T4, L4 or H200"},
    [KEY_UUID] = {"uuid", true, true, set_uuid,
                  "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx in lower case hexadecimal"},
    [KEY_BUS_ID] = {"bus_id", true, true, set_bus_id, "a PCI address such as 00000000:00:03.0"},
    [KEY_MINOR] = {"minor", true, true, set_minor, "a number from 0 to 255"},
    [KEY_MEMORY] = {"memory_mib", true, false, set_memory, "a number of MiB above 0"},
    [KEY_CONTEXT] = {"context_mib", true, false, set_context, "a number of MiB up to 65536"},
};
