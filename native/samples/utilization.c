/* What NVML tells this process of the card's time, averaged over some seconds: of the processes
 * that it can see, which in a container are the container's own, and of the whole card. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nvml_api.h"

enum { PROCESSES_MAX = 256, PERIOD_MS = 100 };

static const char usage[] = "usage: %s [--seconds=5]\n";

#define FUNCTIONS(F)                                                       \
    F(nvmlInit_v2) F(nvmlDeviceGetHandleByIndex_v2)                        \
    F(nvmlDeviceGetProcessUtilization) F(nvmlDeviceGetUtilizationRates)

static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
} nvml;

struct mean {
    double sum;
    unsigned long samples;
};

static void open_library(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
#define FIND(name)                                                           \
    {                                                                        \
        void *address = library == NULL ? NULL : dlsym(library, #name);      \
        if (address == NULL) {                                               \
            fprintf(stderr, "libnvidia-ml.so.1 or its " #name " is not there\n"); \
            exit(2);                                                         \
        }                                                                    \
        memcpy(&nvml.name, &address, sizeof address);                        \
    }
    FUNCTIONS(FIND)
}

static void must(nvmlReturn_t result, const char *what)
{
    if (result == NVML_SUCCESS)
        return;
    fprintf(stderr, "%s: NVML error %d\n", what, (int)result);
    exit(1);
}

/* One sample of the processes together, if there is a new one. Nobody busy counts as none. */
static void look_at_processes(nvmlDevice_t card, unsigned long long *seen_us, struct mean *mean)
{
    nvmlProcessUtilizationSample_t samples[PROCESSES_MAX];
    unsigned count = PROCESSES_MAX;
    nvmlReturn_t result = nvml.nvmlDeviceGetProcessUtilization(card, samples, &count, *seen_us);
    if (result == NVML_ERROR_NOT_FOUND)
        return;
    must(result, "nvmlDeviceGetProcessUtilization");
    for (unsigned i = 0; i < count; i++) {
        mean->sum += samples[i].smUtil;
        if (samples[i].timeStamp > *seen_us)
            *seen_us = samples[i].timeStamp;
    }
    mean->samples++;
}

static void look_at_card(nvmlDevice_t card, struct mean *mean)
{
    nvmlUtilization_t rates;
    must(nvml.nvmlDeviceGetUtilizationRates(card, &rates), "nvmlDeviceGetUtilizationRates");
    mean->sum += rates.gpu;
    mean->samples++;
}

static double value(const struct mean *mean)
{
    return mean->samples ? mean->sum / (double)mean->samples : 0;
}

int main(int count, char **arguments)
{
    static const struct option options[] = {
        {"seconds", required_argument, NULL, 's'}, {NULL, 0, NULL, 0}};
    double seconds = 5;
    int option;
    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        if (option == '?') {
            fprintf(stderr, usage, arguments[0]);
            return 2;
        }
        seconds = atof(optarg);
    }
    nvmlDevice_t card;
    struct mean processes = {0}, whole = {0};
    unsigned long long seen_us = 0;
    const struct timespec period = {0, PERIOD_MS * 1000000L};
    open_library();
    must(nvml.nvmlInit_v2(), "nvmlInit");
    must(nvml.nvmlDeviceGetHandleByIndex_v2(0, &card), "nvmlDeviceGetHandleByIndex");
    for (int i = 0; i < (int)(seconds * 1000 / PERIOD_MS); i++) {
        nanosleep(&period, NULL);
        look_at_processes(card, &seen_us, &processes);
        look_at_card(card, &whole);
    }
    printf("processes %.2f\ncard %.2f\n", value(&processes), value(&whole));
    return 0;
}
