/* Memory that several processes have open is on one account only: the exporter's, while it lives in
 * the same budget; else the importer's.
 *
 * An exporter leaves a word in the region for each handle it gave out. An importer that finds one
 * keeps the exporter's slot: as long as it holds a read lock on the slot's second byte, nobody
 * zeroes the account, also when the exporter is dead. */
#ifndef CASABA_SHARING_H
#define CASABA_SHARING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "account.h"
#include "budget.h"

/* Slots that are kept, by share of the card; NO_SLOT: none. */
struct keep {
    const struct card *card;
    int slots[MAX_BUDGETS];
};

/* What a handle is known by to exporter and importer; never 0. */
uint64_t sharing_identity(const void *handle, size_t bytes);

/* Identity of the file behind a descriptor; 0: it cannot be told from others. */
uint64_t sharing_identity_of_file(int descriptor);

void sharing_export(const struct card *card, uint64_t identity);
void sharing_withdraw(const struct card *card, uint64_t identity);

/* Gives back the charge of memory that was exported; but it stays as long as somebody has memory of
 * this process open, or this process the file (-1: none) that still holds it, which has this
 * identity. `_settle` looks again. False: nothing was given back. */
void sharing_return(const struct card *card, struct charge *charge, int file, uint64_t identity);
bool sharing_settle(void);

void sharing_after_fork(void);

/* True: the memory is on the account of a process of the budget, which is now kept. */
bool sharing_keep(const struct card *card, uint64_t identity, struct keep *keep);
void sharing_let_go(struct keep *keep);

#endif
