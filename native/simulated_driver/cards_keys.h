/* The keys of cards.conf and how each is read. */
#ifndef CASABA_CARDS_KEYS_H
#define CASABA_CARDS_KEYS_H

#include "cards_conf.h"

enum { KEY_DRIVER_VERSION, KEY_CUDA_VERSION, KEY_DEVICE_NODES, KEY_SLICE, KEY_KERNEL,
       KEY_WINDOW, KEY_LAG, KEY_NVML_DELAY, KEY_NVML_ABSENT, KEY_ALLOC_FAILS, KEY_FAILS_AFTER,
       KEY_MODEL, KEY_UUID, KEY_BUS_ID, KEY_MINOR, KEY_MEMORY, KEY_CONTEXT, KEY_COUNT };

struct key {
    const char *name;
    bool of_card, required;
    bool (*set)(struct host *host, struct card *card, const char *value);
    const char *wanted;
};

extern const struct key keys[KEY_COUNT];

#endif
