/* How busy a card was: from the samples of its schedule, over a window that ended a while ago. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "card_queue.h"
#include "nvml_driver.h"

/* A copy of the card's schedule, and which of its samples begin and end the window. */
struct window {
    struct schedule *schedule;
    uint64_t first, last;
    unsigned slots;
};

static unsigned number_of(const struct card *card)
{
    return (unsigned)(card - nvml.host.cards);
}

/* Microseconds since the epoch of a time of CLOCK_MONOTONIC. */
static unsigned long long wall_us(uint64_t monotonic_ns)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    uint64_t wall_ns = (uint64_t)wall.tv_sec * UINT64_C(1000000000) + (uint64_t)wall.tv_nsec;
    return (wall_ns - (clock_ns() - monotonic_ns)) / 1000;
}

static nvmlReturn_t look(struct account *account, unsigned card, struct window *window)
{
    window->schedule = account == NULL ? NULL : queue_copy(account, card);
    if (window->schedule == NULL)
        return account == NULL ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_ERROR_MEMORY;
    const struct host *host = account->host;
    window->slots = account_slots(account);
    window->last = window->schedule->next_sample_ns / SAMPLE_PERIOD_NS - 1 - host->lag_samples;
    window->first = window->last - host->window_samples;
    return NVML_SUCCESS;
}

static nvmlReturn_t open_window(const struct card *card, struct window *window)
{
    pthread_mutex_lock(&nvml.lock);
    nvmlReturn_t result = look(nvml_account(), number_of(card), window);
    pthread_mutex_unlock(&nvml.lock);
    return result;
}

static uint64_t end_ns(uint64_t sample)
{
    return sample * SAMPLE_PERIOD_NS;
}

static unsigned percent(uint64_t busy_ns, uint64_t samples)
{
    uint64_t whole_ns = samples * SAMPLE_PERIOD_NS;
    uint64_t rounded = (busy_ns * 100 + whole_ns / 2) / whole_ns;
    return rounded < 100 ? (unsigned)rounded : 100;
}

static uint64_t card_busy_ns(const struct window *window, uint64_t first, uint64_t last)
{
    const uint64_t *samples_ns = window->schedule->busy_samples_ns;
    return samples_ns[last % SAMPLES] - samples_ns[first % SAMPLES];
}

static unsigned slot_percent(const struct window *window, unsigned slot)
{
    uint64_t before_ns = window->schedule->samples_ns[window->first % SAMPLES][slot];
    uint64_t after_ns = window->schedule->samples_ns[window->last % SAMPLES][slot];
    if (after_ns <= before_ns)
        return 0;
    unsigned share = percent(after_ns - before_ns, window->last - window->first);
    return share > 0 ? share : 1;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    const struct card *card;
    struct window window;
    nvmlReturn_t result = nvml_card(device, utilization, &card);
    if (result == NVML_SUCCESS)
        result = open_window(card, &window);
    if (result != NVML_SUCCESS)
        return result;
    uint64_t busy_ns = card_busy_ns(&window, window.first, window.last);
    *utilization = (nvmlUtilization_t){percent(busy_ns, window.last - window.first), 0};
    free(window.schedule);
    return NVML_SUCCESS;
}

struct share {
    unsigned pid, percent;
};

/* Living processes that the caller can see and that were served within the window. */
static nvmlReturn_t shares(const struct card *card, struct share shares[SLOTS], unsigned *count,
                           unsigned long long *wall)
{
    struct window window;
    *count = 0;
    pthread_mutex_lock(&nvml.lock);
    struct account *account = nvml_account();
    nvmlReturn_t result = look(account, number_of(card), &window);
    for (unsigned slot = 0; result == NVML_SUCCESS && slot < window.slots; slot++) {
        unsigned share = slot_percent(&window, slot);
        int pid = share > 0 ? account_pid(account, slot) : 0;
        if (pid > 0)
            shares[(*count)++] = (struct share){(unsigned)pid, share};
    }
    pthread_mutex_unlock(&nvml.lock);
    if (result != NVML_SUCCESS)
        return result;
    *wall = wall_us(end_ns(window.last));
    free(window.schedule);
    return NVML_SUCCESS;
}

/* What both forms of the question share: *count in: room, out: how many there are. */
static nvmlReturn_t ask_shares(nvmlDevice_t device, struct share *found, unsigned *count,
                               const void *array, unsigned long long last_seen_us,
                               unsigned long long *wall)
{
    const struct card *card;
    nvmlReturn_t result = nvml_card(device, count, &card);
    unsigned room = result == NVML_SUCCESS ? *count : 0;
    if (result == NVML_SUCCESS)
        result = shares(card, found, count, wall);
    if (result != NVML_SUCCESS)
        return result;
    if (*count == 0 || *wall <= last_seen_us) {
        *count = 0;
        return NVML_ERROR_NOT_FOUND;
    }
    return array == NULL || room < *count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long last_seen_us)
{
    struct share found[SLOTS];
    unsigned long long wall;
    nvmlReturn_t result = ask_shares(device, found, count, samples, last_seen_us, &wall);
    for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
        samples[i] = (nvmlProcessUtilizationSample_t){
            .pid = found[i].pid, .timeStamp = wall, .smUtil = found[i].percent};
    return result;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_v1_t *answer)
{
    struct share found[SLOTS];
    unsigned long long wall;
    nvmlReturn_t result = nvml_check(answer);
    if (result != NVML_SUCCESS)
        return result;
    if (answer->version != NVML_STRUCT_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    result = ask_shares(device, found, &answer->processSamplesCount, answer->procUtilArray,
                        answer->lastSeenTimeStamp, &wall);
    for (unsigned i = 0; result == NVML_SUCCESS && i < answer->processSamplesCount; i++)
        answer->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .timeStamp = wall, .pid = found[i].pid, .smUtil = found[i].percent};
    return result;
}

/* Samples of the whole card, one a period, oldest first. */
static unsigned put_samples(const struct window *window, unsigned long long last_seen_us,
                            nvmlSample_t *samples, unsigned room)
{
    unsigned count = 0;
    uint64_t oldest = window->last > SAMPLES / 2 ? window->last - SAMPLES / 2 : 1;
    for (uint64_t sample = oldest; sample <= window->last; sample++) {
        unsigned long long wall = wall_us(end_ns(sample));
        if (wall <= last_seen_us)
            continue;
        if (samples != NULL && count < room)
            samples[count] = (nvmlSample_t){
                wall, {.uiVal = percent(card_busy_ns(window, sample - 1, sample), 1)}};
        count++;
    }
    return samples == NULL || count < room ? count : room;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlEnum_t type,
                                  unsigned long long last_seen_us, nvmlEnum_t *value_type,
                                  unsigned int *count, nvmlSample_t *samples)
{
    const struct card *card;
    struct window window;
    nvmlReturn_t result = nvml_card(device, count, &card);
    if (result != NVML_SUCCESS)
        return result;
    if (value_type == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (type != NVML_GPU_UTILIZATION_SAMPLES)
        return NVML_ERROR_NOT_SUPPORTED;
    result = open_window(card, &window);
    if (result != NVML_SUCCESS)
        return result;
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    *count = put_samples(&window, last_seen_us, samples, *count);
    free(window.schedule);
    return *count > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* For tests, which have to know exactly: no part of NVML. */
nvmlReturn_t casabaSimulatedBusy(nvmlDevice_t device, casabaSimulatedBusy_t *entries,
                                 unsigned int *count, unsigned long long *card_busy,
                                 unsigned long long *now)
{
    const struct card *card;
    struct window window;
    nvmlReturn_t result = nvml_card(device, count, &card);
    if (result != NVML_SUCCESS)
        return result;
    unsigned room = entries == NULL ? 0 : *count;
    pthread_mutex_lock(&nvml.lock);
    struct account *account = nvml_account();
    result = look(account, number_of(card), &window);
    *count = 0;
    for (unsigned slot = 0; result == NVML_SUCCESS && slot < window.slots; slot++) {
        const struct channel *channel = &window.schedule->channels[slot];
        int pid = account_pid(account, slot);
        if ((*count)++ < room)
            entries[*count - 1] = (casabaSimulatedBusy_t){
                channel->serial, channel->completed_ns,
                (unsigned)(pid > 0 ? (uint64_t)pid : channel->pid), pid > 0 || pid == 0};
    }
    pthread_mutex_unlock(&nvml.lock);
    if (result != NVML_SUCCESS)
        return result;
    uint64_t ended = window.schedule->ended_count;
    for (uint64_t i = ended > ENDED ? ended - ENDED : 0; i < ended; i++) {
        const struct ended *gone = &window.schedule->ended[i % ENDED];
        if ((*count)++ < room)
            entries[*count - 1] =
                (casabaSimulatedBusy_t){gone->serial, gone->busy_ns, (unsigned)gone->pid, 0};
    }
    if (card_busy != NULL)
        *card_busy = window.schedule->busy_ns;
    if (now != NULL)
        *now = window.schedule->now_ns;
    free(window.schedule);
    return *count <= room || entries == NULL ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}
