/* The budgets of this process: each is one request of one claim, with a policy and a region. */
#ifndef CASABA_BUDGET_H
#define CASABA_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "layouts.h"
#include "lock.h"

enum { MAX_BUDGETS = 32, MAX_CARDS = 64, MAX_BUDGET_PATH = 512 };

struct budget;

/* What one budget grants of one card. The limits may change at any time. */
struct share {
    struct budget *budget;
    unsigned int index; /* of the card in policy and region */
    atomic_u64 memory_limit, context_allowance, context_size; /* bytes */
    atomic_u32 cores, weight; /* as in policy_card */
};

struct budget {
    char folder[MAX_BUDGET_PATH];
    const struct policy_file *policy;
    struct region_file *region;
    int descriptor;       /* of the region; holds the slot's lock; -1: none */
    struct stat identity; /* of the region: what the descriptor must still be */
    int slot;
    struct lock refreshing, sweeping;
    unsigned int keeps[REGION_SLOTS]; /* things open here that are on a slot's account */
    atomic_u64 policy_index; /* the counter that the limits were read at */
    atomic_u64 swept_ns;     /* CLOCK_MONOTONIC_COARSE */
    unsigned int share_count;
    uint8_t uuids[POLICY_MAX_CARDS][16];
    struct share shares[POLICY_MAX_CARDS];
};

/* All shares of one card, in path order. */
struct card {
    uint8_t uuid[16];
    unsigned int share_count;
    struct share *shares[MAX_BUDGETS];
};

/* Finds and maps all budgets. The number of them; -1: one cannot be used, and that was said. */
int budgets_attach(void);

/* Takes a slot in each region. False: one has none left, and that was said. */
bool budgets_take_slots(void);

/* Says that the driver has none of the cards. */
void budgets_refuse_cards(void);

/* Tells all regions how many names this process asked for that the guard does not know. */
void budgets_tell_unknown_names(uint64_t count);

/* Whether a policy asks for the announcement. */
bool budgets_announce(void);

/* In a fork child: lets go of the parent's descriptors without touching its locks. */
void budgets_after_fork(void);

/* The card with this UUID; NULL: no budget names it. */
struct card *budgets_card(const uint8_t uuid[16]);

/* All cards that budgets name, one by one; NULL: no more. */
struct card *budgets_card_at(unsigned int number);

/* Reads the policy again where it has changed. */
void budget_read_again(struct budget *budget);

static inline void budget_refresh(struct budget *budget) {
    uint64_t index = atomic_load_explicit(&budget->policy->index, memory_order_acquire);
    if (index != atomic_load_explicit(&budget->policy_index, memory_order_relaxed))
        budget_read_again(budget);
}

/* Zeroes what dead processes left; `_if_due`: at most every 50 ms, for calls that only look. */
void budget_sweep(struct budget *budget);
void budget_sweep_if_due(struct budget *budget);

/* Holds a slot of the region against being zeroed; as often as it is let go. False: it is gone. */
bool budget_keep(struct budget *budget, int slot);
void budget_let_go(struct budget *budget, int slot);

/* Whether anybody holds this process's own slot, itself included. */
bool budget_is_kept(struct budget *budget);

#endif
