#include "account.h"

#include <stdlib.h>
#include <time.h>

#include "region.h"

enum { ATTEMPTS = 5 };

static atomic_u64 *own_word(const struct share *share, unsigned int kind) {
    struct region_card *card = &share->budget->region->cards[share->index];
    return &(kind == KIND_CONTEXT ? card->overhead : card->asked)[share->budget->slot];
}

static uint64_t add(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }
static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Overhead up to the allowance is free. `room` is what may be added to the account. */
struct balance {
    uint64_t total, room;
};

static struct balance balance(const struct share *share, unsigned int kind) {
    const struct region_file *region = share->budget->region;
    const struct region_card *card = &region->cards[share->index];
    uint64_t limit = atomic_load(&share->memory_limit);
    uint64_t allowance = atomic_load(&share->context_allowance);
    uint64_t overhead = region_sum(region, card->overhead);
    uint64_t total = add(region_sum(region, card->asked), less(overhead, allowance));
    uint64_t still_free = kind == KIND_CONTEXT ? less(allowance, overhead) : 0;
    return (struct balance){total, total > limit ? 0 : add(limit - total, still_free)};
}

/* Never below zero: a word that another process has wrongly cleared must not wrap. */
static void subtract(atomic_u64 *word, uint64_t bytes) {
    uint64_t seen = atomic_load(word);
    while (!atomic_compare_exchange_weak(word, &seen, less(seen, bytes))) {
    }
}

static struct region_slot *own_slot(const struct share *share) {
    return &share->budget->region->slots[share->budget->slot];
}

/* For those who look: the most that this process ever held of all cards. */
static void raise_peak(const struct share *share) {
    const struct budget *budget = share->budget;
    atomic_u64 *peak = &own_slot(share)->peak;
    uint64_t held = 0;
    for (unsigned int i = 0; i < budget->share_count; i++)
        held += atomic_load_explicit(&budget->region->cards[i].asked[budget->slot],
                                     memory_order_relaxed);
    uint64_t seen = atomic_load_explicit(peak, memory_order_relaxed);
    while (held > seen && !atomic_compare_exchange_weak(peak, &seen, held)) {
    }
}

static void take_back(struct share *share, unsigned int kind, uint64_t bytes) {
    subtract(own_word(share, kind), bytes);
    if (kind != KIND_DEVICE) subtract(&own_slot(share)->kinds[kind], bytes);
}

/* Adds first and looks then, so that of two racing processes at least one sees the other. */
static bool try_share(struct share *share, unsigned int kind, uint64_t bytes) {
    uint64_t limit = atomic_load(&share->memory_limit);
    if (bytes > add(limit, atomic_load(&share->context_allowance))) return false;
    atomic_fetch_add(own_word(share, kind), bytes);
    if (balance(share, kind).total > limit) {
        subtract(own_word(share, kind), bytes);
        return false;
    }
    if (kind != KIND_DEVICE) atomic_fetch_add(&own_slot(share)->kinds[kind], bytes);
    raise_peak(share);
    return true;
}

/* `looks_first`: a request that cannot fit is not even added for a moment, in which it may be in
 * the way of others. */
static bool reserve_whole(const struct card *card, struct charge *charge, bool looks_first) {
    for (unsigned int i = 0; i < card->share_count; i++) {
        struct share *share = card->shares[i];
        if (looks_first && charge->bytes > balance(share, charge->kind).room) continue;
        if (!try_share(share, charge->kind, charge->bytes)) continue;
        charge->share = share;
        return true;
    }
    return false;
}

static void return_parts(struct charge *charge) {
    for (unsigned int i = 0; i < charge->part_count; i++)
        take_back(charge->parts[i].share, charge->kind, charge->parts[i].bytes);
    if (charge->parts) free(charge->parts);
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
        uint64_t bytes = smaller(missing, balance(share, charge->kind).room);
        if (!bytes || !try_share(share, charge->kind, bytes)) continue;
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

void account_count_refusal(const struct card *card) {
    for (unsigned int i = 0; i < card->share_count; i++) {
        struct budget *budget = card->shares[i]->budget;
        atomic_fetch_add(&budget->region->refusals, 1);
        atomic_fetch_add(&budget->region->slots[budget->slot].refusals, 1);
    }
}

static void refresh(const struct card *card) {
    for (unsigned int i = 0; i < card->share_count; i++) budget_refresh(card->shares[i]->budget);
}

bool account_reserve(const struct card *card, unsigned int kind, uint64_t bytes,
                     struct charge *charge) {
    *charge = (struct charge){.bytes = bytes, .kind = kind};
    if (bytes == 0) return true;
    refresh(card);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (attempt == 1) sweep(card);
        if (attempt > 1) back_off(attempt);
        if (reserve_whole(card, charge, attempt > 0) || reserve_split(card, charge)) return true;
    }
    *charge = (struct charge){0};
    return false;
}

void account_return(struct charge *charge) {
    if (charge->share) take_back(charge->share, charge->kind, charge->bytes);
    return_parts(charge);
    *charge = (struct charge){0};
}

/* As parts, one for each share it comes from; room for `room` of them. */
static bool spread(struct charge *charge, unsigned int room) {
    struct part *parts = realloc(charge->parts, room * sizeof *parts);
    if (!parts) return false;
    charge->parts = parts;
    if (charge->share) parts[charge->part_count++] = (struct part){charge->share, charge->bytes};
    charge->share = NULL;
    return true;
}

static void add_part(struct charge *charge, const struct part *more) {
    unsigned int i = 0;
    while (i < charge->part_count && charge->parts[i].share != more->share) i++;
    if (i == charge->part_count)
        charge->parts[charge->part_count++] = (struct part){more->share, 0};
    charge->parts[i].bytes += more->bytes;
}

bool account_join(struct charge *into, struct charge *more) {
    const struct part whole = {more->share, more->bytes};
    if (into->bytes && into->share && into->share == more->share) {
        into->bytes += more->bytes;
    } else if (!into->bytes) {
        free(into->parts);
        *into = *more;
        more->parts = NULL;
    } else if (more->bytes) {
        if (!spread(into, into->part_count + more->part_count + 2)) return false;
        if (more->share) add_part(into, &whole);
        for (unsigned int i = 0; i < more->part_count; i++) add_part(into, &more->parts[i]);
        into->bytes += more->bytes;
    }
    free(more->parts);
    *more = (struct charge){0};
    return true;
}

void account_shrink(struct charge *charge, uint64_t bytes) {
    uint64_t surplus = less(charge->bytes, bytes);
    charge->bytes -= surplus;
    if (charge->share) take_back(charge->share, charge->kind, surplus);
    for (unsigned int i = charge->part_count; surplus && i-- > 0;) {
        struct part *part = &charge->parts[i];
        uint64_t given = smaller(surplus, part->bytes);
        take_back(part->share, charge->kind, given);
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
        usage.used = add(usage.used, smaller(balance(share, KIND_DEVICE).total, limit));
    }
    return usage;
}
