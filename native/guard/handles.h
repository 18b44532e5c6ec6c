/* What this process has been given by the driver and what was charged for it. */
#ifndef CASABA_HANDLES_H
#define CASABA_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

#include "account.h"

enum handle_kind {
    NO_HANDLE,
    MEMORY,   /* key: device pointer; owner: its context */
    CONTEXT,  /* key: the context */
    ARRAY,    /* key: the array or mipmapped array; owner: its context */
    POOLED,   /* key: device pointer; owner: struct pool; span: bytes */
    OPENED,   /* key: device pointer of memory of another process; owner: struct opened */
    EXPORTED_BLOCK, /* key: device pointer; owner: its card; span: identity of its handle */
    EXTERNAL, /* key: the external memory */
    EXEC,     /* key: an executable graph; span: bytes of its memory nodes */
    PHYSICAL, /* key: generic allocation handle; owner: struct physical; span: references */
    MAPPING   /* key: address; owner: struct physical; span: bytes */
};

struct handle {
    uint64_t key;
    void *owner;
    uint64_t span;
    struct charge charge;
    uint8_t kind;  /* enum handle_kind */
    uint8_t doomed; /* its owner is being destroyed */
};

/* Adds one. `stale` gets what was there under the same key (the driver has given the key out
 * anew), else a handle of kind NO_HANDLE. False: no memory; nothing was changed. */
bool handles_add(const struct handle *handle, struct handle *stale);

/* Finds one; `_take` also removes it. */
bool handles_find(enum handle_kind kind, uint64_t key, struct handle *found);
bool handles_take(enum handle_kind kind, uint64_t key, struct handle *taken);

/* Finds the one of this kind with key <= address < key + span, and one with its key in a range;
 * these look at all of them. */
bool handles_find_covering(enum handle_kind kind, uint64_t address, struct handle *found);
bool handles_find_within(enum handle_kind kind, uint64_t address, uint64_t bytes,
                         struct handle *found);

/* Destroying an owner takes two steps, since the driver may give its keys out again before the
 * second: mark what it owns, call the driver, then return the charges of what is marked, or spare
 * it when the driver refused. */
void handles_doom(const void *owner);
void handles_spare(const void *owner);
void handles_return_doomed(const void *owner);

/* In a fork child, where nothing of the parent's is usable: forgets all, changes no account. */
void handles_after_fork(void);

#endif
