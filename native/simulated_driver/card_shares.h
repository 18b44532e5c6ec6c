/* Memory that several processes hold: whoever made it, it is the card's until the last of them lets
 * go or dies. It is accounted by itself, not with a process, and shown with the process that made
 * it or, when that is gone, with another holder. */
#ifndef CASABA_CARD_SHARES_H
#define CASABA_CARD_SHARES_H

#include "card_account.h"
#include "card_schedule.h"

enum { SHARES = 256 };

struct share {
    uint64_t key; /* never the same twice; 0: free */
    uint64_t bytes;
    uint32_t card, maker;          /* slot */
    uint64_t holders[SLOT_WORDS]; /* bit set: the slot holds it */
};

struct shares {
    uint64_t last_key;
    uint32_t used; /* entries ever used: the others need no look */
    struct share entries[SHARES];
};

/* Shares `bytes` that this process has been charged for: they leave its own account. The share's
 * number, -1 when there are too many. */
int share_make(struct account *account, unsigned card, uint64_t bytes);

/* Holds what another process made. False when it is gone. */
bool share_join(struct account *account, unsigned number, uint64_t key, struct share *share);
void share_leave(struct account *account, unsigned number);

/* Key of a share that this process holds. */
uint64_t share_key(struct account *account, unsigned number);

/* A descriptor that holds the share too, in whatever process it is open, and the way back. */
int share_descriptor(struct account *account, unsigned number);
bool share_of_descriptor(struct account *account, int descriptor, unsigned *number, uint64_t *key);

/* A slot has a new owner. */
void shares_forget(struct account *account);

/* Bytes of living shares: of a card, and as shown with one slot. The card is locked. */
uint64_t shares_bytes(const struct account *account, unsigned card);
uint64_t shares_shown(const struct account *account, unsigned card, unsigned slot);

#endif
