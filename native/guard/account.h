/* Takes bytes from the budgets of a card and gives them back. Decides every refusal. */
#ifndef CASABA_ACCOUNT_H
#define CASABA_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "budget.h"

struct part {
    struct share *share;
    uint64_t bytes;
};

/* Bytes taken, and from where. All zero: nothing. */
struct charge {
    uint64_t bytes;
    struct share *share; /* that gave all of it, or */
    struct part *parts;  /* that each gave some */
    unsigned int part_count;
    unsigned int kind; /* KIND_*: of contexts it is overhead, of all else memory asked for */
};

/* All or nothing. False: over the limit. */
bool account_reserve(const struct card *card, unsigned int kind, uint64_t bytes,
                     struct charge *charge);

/* Counts a request that was refused for good. */
void account_count_refusal(const struct card *card);

/* Moves a charge of the same card and kind into another. False: no memory; nothing was changed. */
bool account_join(struct charge *into, struct charge *more);

/* Gives a charge back and zeroes it. */
void account_return(struct charge *charge);

/* Keeps only the first `bytes` of a charge. */
void account_shrink(struct charge *charge, uint64_t bytes);

struct usage {
    uint64_t limit, used; /* bytes; used <= limit */
};

/* What all processes together use of a card's budgets, and their limits. */
struct usage account_usage(const struct card *card);

#endif
