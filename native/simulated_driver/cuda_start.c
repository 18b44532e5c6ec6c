/* cuInit, what a fork leaves, versions and error texts. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_driver.h"

enum state { STATE_UNTRIED, STATE_READY, STATE_FORKED };

struct driver driver = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .account = {.state_fd = -1, .pids_fd = -1, .slot = -1, .lock = PTHREAD_MUTEX_INITIALIZER},
};
static _Atomic int state = STATE_UNTRIED;

/* Not pthread_atfork: for old glibc that would need libpthread.so.0. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *library);
extern void *__dso_handle __attribute__((visibility("hidden")));

static void in_fork_child(void)
{
    if (atomic_load(&state) != STATE_READY)
        return;
    atomic_store(&state, STATE_FORKED);
    account_close(&driver.account);
}

CUresult driver_enter(void)
{
    if (atomic_load(&state) != STATE_READY)
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&driver.lock);
    return CUDA_SUCCESS;
}

CUresult driver_leave(CUresult result)
{
    pthread_mutex_unlock(&driver.lock);
    return result;
}

bool fault_refuses_allocation(void)
{
    unsigned every = driver.host.alloc_fails_every;
    return every != 0 && ++driver.allocations % every == 0;
}

/* One item of CUDA_VISIBLE_DEVICES: an index among the visible cards or the beginning of a UUID. */
static int named_card(const unsigned *cards, int count, const char *name)
{
    char *end;
    long index = strtol(name, &end, 10);
    if (end != name && *end == '\0')
        return index >= 0 && index < count ? (int)cards[index] : -1;
    int card = strncmp(name, "GPU-", 4) == 0 ? card_by_uuid(&driver.host, name) : -1;
    for (int i = 0; i < count; i++)
        if ((int)cards[i] == card)
            return card;
    return -1;
}

/* As documented for the variable: devices after the first bad item are not seen; a repeated one
 * leaves none. */
static void select_devices(const char *names)
{
    unsigned cards[CARDS_MAX];
    char copy[CARDS_MAX * 64], *rest = NULL;
    int count = driver.device_count;
    memcpy(cards, driver.cards, sizeof cards);
    snprintf(copy, sizeof copy, "%s", names);
    driver.device_count = 0;
    for (char *name = strtok_r(copy, ", ", &rest); name != NULL;
         name = strtok_r(NULL, ", ", &rest)) {
        int card = named_card(cards, count, name);
        if (card < 0)
            return;
        for (int i = 0; i < driver.device_count; i++)
            if ((int)driver.cards[i] == card) {
                driver.device_count = 0;
                return;
            }
        driver.cards[driver.device_count++] = (unsigned)card;
    }
}

static void find_devices(void)
{
    const char *names = getenv("CUDA_VISIBLE_DEVICES");
    driver.device_count = 0;
    for (unsigned card = 0; card < driver.host.card_count; card++)
        if (card_is_visible(&driver.host, card))
            driver.cards[driver.device_count++] = card;
    if (names != NULL)
        select_devices(names);
    for (CUdevice device = 0; device < driver.device_count; device++)
        driver.primary[device] =
            (struct CUctx_st){.device = device, .card = driver.cards[device], .primary = true};
}

static CUresult start(void)
{
    struct reason reason;
    if (!account_open(&driver.account, &driver.host, &reason)) {
        reason_show(&reason);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    find_devices();
    if (driver.device_count == 0) {
        account_close(&driver.account);
        return CUDA_ERROR_NO_DEVICE;
    }
    if (!account_take_slot(&driver.account, &reason)) {
        account_close(&driver.account);
        reason_show(&reason);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    __register_atfork(NULL, NULL, in_fork_child, &__dso_handle);
    atomic_store(&state, STATE_READY);
    return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags)
{
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&state) == STATE_FORKED)
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&driver.lock);
    CUresult result = atomic_load(&state) == STATE_READY ? CUDA_SUCCESS : start();
    return driver_leave(result);
}

/* Works before cuInit, as the real one; then the settings are read here. */
CUresult cuDriverGetVersion(int *version)
{
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&state) != STATE_UNTRIED) {
        *version = driver.host.cuda_version;
        return CUDA_SUCCESS;
    }
    struct reason reason;
    struct host *host = calloc(1, sizeof *host);
    char path[4096];
    snprintf(path, sizeof path, "%s/cards.conf", simulated_dir());
    bool good = host != NULL && cards_conf_read(path, host, &reason);
    if (good)
        *version = host->cuda_version;
    free(host);
    return good ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

#define ERROR(identifier, value, text) {value, #identifier, text},
static const struct error {
    int value;
    const char *name, *text;
} errors[] = {
#include "cuda_errors.def"
};
#undef ERROR

static const struct error *find_error(CUresult value)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].value == (int)value)
            return &errors[i];
    return NULL;
}

CUresult cuGetErrorName(CUresult value, const char **text)
{
    const struct error *error = find_error(value);
    if (text != NULL)
        *text = error == NULL ? NULL : error->name;
    return error == NULL || text == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult value, const char **text)
{
    const struct error *error = find_error(value);
    if (text != NULL)
        *text = error == NULL ? NULL : error->text;
    return error == NULL || text == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
