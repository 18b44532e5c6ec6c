#include "account.h"

#include <stdlib.h>
#include <time.h>

#include "region.h"

enum { ATTEMPTS = 5 };

static atomic_u64 *own_word(const struct share *share, enum account account) {
    struct region_card *card = &share->budget->region->cards[share->index];
    return &(account == ASKED ? card->asked : card->overhead)[share->budget->slot];
}

static uint64_t add(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }
static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Overhead up to the allowance is free. `room` is what may be added to the account. */
struct balance {
    uint64_t total, room;
};

static struct balance balance(const struct share *share, enum account account) {
    const struct region_file *region = share->budget->region;
    const struct region_card *card = &region->cards[share->index];
    uint64_t limit = atomic_load(&share->memory_limit);
    uint64_t allowance = atomic_load(&share->context_allowance);
    uint64_t overhead = region_sum(region, card->overhead);
    uint64_t total = add(region_sum(region, card->asked), less(overhead, allowance));
    uint64_t still_free = account == OVERHEAD ? less(allowance, overhead) : 0;
    return (struct balance){total, total > limit ? 0 : add(limit - total, still_free)};
}

/* Never below zero: a word that another process has wrongly cleared must not wrap. */
static void take_back(struct share *share, enum account account, uint64_t bytes) {
    atomic_u64 *word = own_word(share, account);
    uint64_t seen = atomic_load(word);
    while (!atomic_compare_exchange_weak(word, &seen, less(seen, bytes))) {
    }
}

/* Adds first and looks then, so that of two racing processes at least one sees the other. */
static bool try_share(struct share *share, enum account account, uint64_t bytes) {
    if (bytes > balance(share, account).room) return false;
    atomic_fetch_add(own_word(share, account), bytes);
    if (balance(share, account).total <= atomic_load(&share->memory_limit)) return true;
    take_back(share, account, bytes);
    return false;
}

static bool reserve_whole(const struct card *card, struct charge *charge) {
    for (unsigned int i = 0; i < card->share_count; i++)
        if (try_share(card->shares[i], charge->account, charge->bytes)) {
            charge->share = card->shares[i];
            return true;
        }
    return false;
}

static void return_parts(struct charge *charge) {
    for (unsigned int i = 0; i < charge->part_count; i++)
        take_back(charge->parts[i].share, charge->account, charge->parts[i].bytes);
    free(charge->parts);
    charge->parts = NULL;
    charge->part_count = 0;
}

static bool reserve_split(const struct card *card, struct charge *charge) {
    if (card->share_count < 2) return false;
    charge->parts = calloc(card->share_count, sizeof *charge->parts);
    if (!charge->parts) return false;
    uint64_t missing = charge->bytes;
    for (unsigned int i = 0; missing && i < card->share_count; i++) {
        struct share *share = card->shares[i];
        uint64_t bytes = smaller(missing, balance(share, charge->account).room);
        if (!bytes || !try_share(share, charge->account, bytes)) continue;
        charge->parts[charge->part_count++] = (struct part){share, bytes};
        missing -= bytes;
    }
    if (missing) return_parts(charge);
    return missing == 0;
}

/* A racer that will be refused has its bytes in the sum for a moment: worth another look. */
static void back_off(int attempt) {
    struct timespec now, pause = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    pause.tv_nsec = (20000L << attempt) + now.tv_nsec % (20000L << attempt);
    nanosleep(&pause, NULL);
}

static void sweep(const struct card *card) {
    for (unsigned int i = 0; i < card->share_count; i++) budget_sweep(card->shares[i]->budget);
}

static void count_refusal(const struct card *card) {
    for (unsigned int i = 0; i < card->share_count; i++) {
        struct budget *budget = card->shares[i]->budget;
        atomic_fetch_add(&budget->region->refusals, 1);
        atomic_fetch_add(&budget->region->slots[budget->slot].refusals, 1);
    }
}

static void refresh(const struct card *card) {
    for (unsigned int i = 0; i < card->share_count; i++) budget_refresh(card->shares[i]->budget);
}

bool account_reserve(const struct card *card, enum account account, uint64_t bytes,
                     struct charge *charge) {
    *charge = (struct charge){.bytes = bytes, .account = account};
    if (bytes == 0) return true;
    refresh(card);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (attempt == 1) sweep(card);
        if (attempt > 1) back_off(attempt);
        if (reserve_whole(card, charge) || reserve_split(card, charge)) return true;
    }
    count_refusal(card);
    *charge = (struct charge){0};
    return false;
}

void account_return(struct charge *charge) {
    if (charge->share) take_back(charge->share, charge->account, charge->bytes);
    return_parts(charge);
    *charge = (struct charge){0};
}

void account_shrink(struct charge *charge, uint64_t bytes) {
    uint64_t surplus = less(charge->bytes, bytes);
    charge->bytes -= surplus;
    if (charge->share) take_back(charge->share, charge->account, surplus);
    for (unsigned int i = charge->part_count; surplus && i-- > 0;) {
        struct part *part = &charge->parts[i];
        uint64_t given = smaller(surplus, part->bytes);
        take_back(part->share, charge->account, given);
        part->bytes -= given;
        surplus -= given;
    }
}

struct usage account_usage(const struct card *card) {
    struct usage usage = {0};
    for (unsigned int i = 0; i < card->share_count; i++) {
        struct share *share = card->shares[i];
        budget_refresh(share->budget);
        budget_sweep_if_due(share->budget);
        uint64_t limit = atomic_load(&share->memory_limit);
        usage.limit = add(usage.limit, limit);
        usage.used = add(usage.used, smaller(balance(share, ASKED).total, limit));
    }
    return usage;
}
