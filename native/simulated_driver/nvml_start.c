/* Start, shutdown, the system, and finding a card. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "nvml_driver.h"

struct nvml nvml = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .account = {.state_fd = -1, .pids_fd = -1, .slot = -1, .lock = PTHREAD_MUTEX_INITIALIZER},
};

/* Not pthread_atfork: for old glibc that would need libpthread.so.0. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *library);
extern void *__dso_handle __attribute__((visibility("hidden")));

static void before_fork(void)
{
    pthread_mutex_lock(&nvml.lock);
}

static void in_fork_parent(void)
{
    pthread_mutex_unlock(&nvml.lock);
}

static void in_fork_child(void)
{
    account_close(&nvml.account);
    pthread_mutex_unlock(&nvml.lock);
}

static nvmlReturn_t open_account(void)
{
    struct reason reason;
    if (nvml.account.state != NULL)
        return NVML_SUCCESS;
    if (!account_open(&nvml.account, &nvml.host, &reason)) {
        reason_show(&reason);
        return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    if (nvml.host.nvml_absent) {
        account_close(&nvml.account);
        return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    nvml.visible_count = 0;
    for (unsigned card = 0; card < nvml.host.card_count; card++)
        if (card_is_visible(&nvml.host, card))
            nvml.visible[nvml.visible_count++] = card;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    static bool registered;
    (void)flags;
    pthread_mutex_lock(&nvml.lock);
    nvmlReturn_t result = open_account();
    if (result == NVML_SUCCESS)
        atomic_fetch_add(&nvml.users, 1);
    bool first = result == NVML_SUCCESS && !registered;
    registered = registered || first;
    pthread_mutex_unlock(&nvml.lock);
    if (first)
        __register_atfork(before_fork, in_fork_parent, in_fork_child, &__dso_handle);
    return result;
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&nvml.lock);
    nvmlReturn_t result = atomic_load(&nvml.users) == 0 ? NVML_ERROR_UNINITIALIZED : NVML_SUCCESS;
    if (result == NVML_SUCCESS && atomic_fetch_sub(&nvml.users, 1) == 1)
        account_close(&nvml.account);
    pthread_mutex_unlock(&nvml.lock);
    return result;
}

struct account *nvml_account(void)
{
    return open_account() == NVML_SUCCESS ? &nvml.account : NULL;
}

nvmlReturn_t nvml_check(const void *answer)
{
    if (atomic_load(&nvml.users) == 0)
        return NVML_ERROR_UNINITIALIZED;
    if (nvml.host.nvml_delay_ms > 0)
        nanosleep(&(struct timespec){.tv_sec = nvml.host.nvml_delay_ms / 1000,
                                     .tv_nsec = nvml.host.nvml_delay_ms % 1000 * 1000000L},
                  NULL);
    return answer == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t nvml_card(nvmlDevice_t device, const void *answer, const struct card **card)
{
    nvmlReturn_t result = nvml_check(answer);
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned i = 0; i < nvml.visible_count; i++) {
        *card = &nvml.host.cards[nvml.visible[i]];
        if ((const void *)*card == (const void *)device)
            return NVML_SUCCESS;
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvml_text(char *to, unsigned int length, const char *text)
{
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(to, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
#define ERROR(name, value, text) \
    case name: return text;
    switch (result) {
#include "nvml_errors.def"
    default: return "Unknown Error";
    }
#undef ERROR
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    nvmlReturn_t result = nvml_check(version);
    return result == NVML_SUCCESS ? nvml_text(version, length, nvml.host.driver_version) : result;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    char text[80];
    nvmlReturn_t result = nvml_check(version);
    if (result != NVML_SUCCESS)
        return result;
    snprintf(text, sizeof text, "%d.%s", nvml.host.cuda_version / 1000, nvml.host.driver_version);
    return nvml_text(version, length, text);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    nvmlReturn_t result = nvml_check(version);
    if (result == NVML_SUCCESS)
        *version = nvml.host.cuda_version;
    return result;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    char path[32], text[1024];
    nvmlReturn_t result = nvml_check(name);
    if (result != NVML_SUCCESS)
        return result;
    if (length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NVML_ERROR_NOT_FOUND;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    text[size > 0 ? size : 0] = '\0';
    snprintf(name, length, "%s", text); /* the first word, cut to what fits */
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    nvmlReturn_t result = nvml_check(count);
    if (result == NVML_SUCCESS)
        *count = nvml.visible_count;
    return result;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    return nvmlDeviceGetCount(count);
}

static nvmlDevice_t handle_of(unsigned index)
{
    return (nvmlDevice_t)(void *)&nvml.host.cards[nvml.visible[index]];
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    nvmlReturn_t result = nvml_check(device);
    if (result != NVML_SUCCESS)
        return result;
    if (index >= nvml.visible_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = handle_of(index);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t result = nvml_check(device);
    if (result != NVML_SUCCESS)
        return result;
    if (uuid == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < nvml.visible_count; i++)
        if (strcasecmp(nvml.host.cards[nvml.visible[i]].uuid, uuid) == 0) {
            *device = handle_of(i);
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    unsigned domain, bus, slot;
    nvmlReturn_t result = nvml_check(device);
    if (result != NVML_SUCCESS)
        return result;
    if (bus_id == NULL || sscanf(bus_id, "%8x:%2x:%2x", &domain, &bus, &slot) != 3)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < nvml.visible_count; i++) {
        const struct card *card = &nvml.host.cards[nvml.visible[i]];
        if (card->domain == domain && card->bus == bus && card->device == slot) {
            *device = handle_of(i);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId(bus_id, device);
}
