/* Takes bytes from the budgets of a card and gives them back. Decides every refusal. */
#ifndef CASABA_ACCOUNT_H
#define CASABA_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "budget.h"

enum account { ASKED, OVERHEAD }; /* memory asked for; cost of contexts */

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
    enum account account;
};

/* All or nothing. False: over the limit, which is counted as a refusal. */
bool account_reserve(const struct card *card, enum account account, uint64_t bytes,
                     struct charge *charge);

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
