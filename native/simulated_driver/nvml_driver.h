/* The inside of libnvidia-ml. */
#ifndef CASABA_NVML_DRIVER_H
#define CASABA_NVML_DRIVER_H

#include <stdbool.h>

#include "card_account.h"
#include "nvml_api.h"
#include "simulated_busy.h"

/* Exactly the names of nvml_exports.def leave the library. */
#define EXPORT(name, since) extern __typeof__(name) name __attribute__((visibility("default")));
#include "nvml_exports.def"
#undef EXPORT

struct nvml {
    pthread_mutex_t lock;
    _Atomic unsigned users; /* nvmlInit calls without their nvmlShutdown */
    struct host host;
    struct account account;
    unsigned visible_count;
    unsigned visible[CARDS_MAX]; /* card of each NVML index */
};

extern struct nvml nvml;

nvmlReturn_t nvml_check(const void *answer); /* is it started, is there room for the answer */
nvmlReturn_t nvml_card(nvmlDevice_t device, const void *answer, const struct card **card);
nvmlReturn_t nvml_text(char *to, unsigned int length, const char *text);

/* The account, opened again after a fork. NULL when it cannot be. */
struct account *nvml_account(void);

/* A query of one number that needs nothing but the card. */
#define NVML_ANSWER(name, type, expression)                      \
    nvmlReturn_t name(nvmlDevice_t device, type *answer)         \
    {                                                            \
        const struct card *card;                                 \
        nvmlReturn_t result = nvml_card(device, answer, &card);  \
        if (result == NVML_SUCCESS)                              \
            *answer = (expression);                              \
        return result;                                           \
    }

#endif
