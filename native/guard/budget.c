#include "budget.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "claim_folders.h"
#include "message.h"
#include "metering.h"
#include "policy.h"
#include "region.h"
#include "shared_file.h"

enum { TRIES_AT_START = 50, TRIES_LATER = 1, FIRST_DESCRIPTOR = 3 };
static const uint64_t SWEEP_PERIOD_NS = 50 * 1000 * 1000;

static struct budget budgets[MAX_BUDGETS];
static int budget_count;
static struct card cards[MAX_CARDS];
static unsigned int card_count;
static bool announce;

/* A program that closed all its descriptors may have opened something else under this number. */
static bool is_ours(const struct budget *budget) {
    struct stat status;
    return budget->descriptor >= 0 && fstat(budget->descriptor, &status) == 0 &&
           status.st_dev == budget->identity.st_dev &&
           status.st_ino == budget->identity.st_ino;
}

static void close_descriptor(struct budget *budget) {
    if (is_ours(budget)) close(budget->descriptor);
    budget->descriptor = -1;
}

static void detach(struct budget *budget) {
    if (budget->region) close_descriptor(budget);
    if (budget->policy) munmap((void *)(uintptr_t)budget->policy, POLICY_SIZE);
    if (budget->region) munmap(budget->region, REGION_SIZE);
    memset(budget, 0, sizeof *budget);
    budget->descriptor = -1;
}

static void set_limits(struct share *share, const struct policy_card *limits) {
    atomic_store(&share->memory_limit, limits->memory_limit);
    atomic_store(&share->context_allowance, limits->context_allowance);
    atomic_store(&share->context_size, limits->context_size);
    atomic_store(&share->cores, limits->cores);
    atomic_store(&share->weight, limits->weight);
}

static void set_shares(struct budget *budget, const struct policy_copy *limits) {
    budget->share_count = limits->card_count;
    for (unsigned int i = 0; i < limits->card_count; i++) {
        struct share *share = &budget->shares[i];
        memcpy(budget->uuids[i], limits->cards[i].uuid, sizeof budget->uuids[i]);
        share->budget = budget;
        share->index = i;
        set_limits(share, &limits->cards[i]);
    }
}

static bool are_usable(const struct policy_copy *limits, const char *path) {
    for (unsigned int i = 0; i < limits->card_count; i++)
        if (limits->cards[i].memory_limit == 0) {
            message_refusal(path, "the limit of card %u is 0 bytes; ask for some memory", i);
            return false;
        }
    return true;
}

static bool read_policy(struct budget *budget, const char *path) {
    struct policy_copy limits;
    uint64_t index;
    if (!policy_read(budget->policy, TRIES_AT_START, &limits, &index)) {
        message_refusal(path, "checksum of copy %u is wrong; " SHARED_FILE_REMEDY,
                        (unsigned int)(index & 1));
        return false;
    }
    if (!are_usable(&limits, path)) return false;
    set_shares(budget, &limits);
    atomic_store(&budget->policy_index, index);
    announce |= (limits.flags & POLICY_FLAG_ANNOUNCE) != 0;
    return true;
}

/* The kernel frees the highest descriptor of a killed process first. The lock must go after the
 * driver has let go of the memory, so it takes the lowest number there is; but never a standard
 * stream's, to which the program writes even where it was closed. */
static void lower_descriptor(struct budget *budget) {
    int lower = fcntl(budget->descriptor, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    if (lower < 0) return;
    bool better = lower < budget->descriptor || budget->descriptor < FIRST_DESCRIPTOR;
    close(better ? budget->descriptor : lower);
    if (better) budget->descriptor = lower;
}

static bool open_descriptor(struct budget *budget) {
    char path[MAX_BUDGET_PATH + sizeof PATH_REGION];
    snprintf(path, sizeof path, "%s/%s", budget->folder, PATH_REGION);
    if (!budget->region) budget->region = region_map(path, &budget->identity);
    budget->descriptor = budget->region ? region_open(path, &budget->identity) : -1;
    if (budget->descriptor < 0) return false;
    lower_descriptor(budget);
    return true;
}

static struct card *card_for(const uint8_t uuid[16], const char *path) {
    struct card *card = budgets_card(uuid);
    if (card) return card;
    if (card_count == MAX_CARDS) {
        message_refusal(path, "more than %d cards in the claims of one process; use fewer",
                        MAX_CARDS);
        return NULL;
    }
    card = &cards[card_count++];
    *card = (struct card){0};
    memcpy(card->uuid, uuid, sizeof card->uuid);
    return card;
}

static bool add_to_cards(struct budget *budget, const char *path) {
    for (unsigned int i = 0; i < budget->share_count; i++) {
        struct card *card = card_for(budget->uuids[i], path);
        if (!card) return false;
        if (card->share_count < MAX_BUDGETS) card->shares[card->share_count++] = &budget->shares[i];
    }
    return true;
}

/* A folder without a policy is no budget. */
static bool attach_folder(const char *folder) {
    char path[MAX_BUDGET_PATH + sizeof PATH_POLICY];
    const struct policy_file *policy = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, PATH_POLICY);
    int found = policy_open(path, &policy);
    if (found <= 0) return found == 0;
    if (budget_count == MAX_BUDGETS) {
        munmap((void *)(uintptr_t)policy, POLICY_SIZE);
        message_refusal(path, "more than %d requests in one process; use fewer", MAX_BUDGETS);
        return false;
    }
    struct budget *budget = &budgets[budget_count++];
    budget->policy = policy;
    budget->slot = NO_SLOT;
    snprintf(budget->folder, sizeof budget->folder, "%s", folder);
    return read_policy(budget, path) && open_descriptor(budget) && add_to_cards(budget, path);
}

int budgets_attach(void) {
    for (int i = 0; i < MAX_BUDGETS; i++) detach(&budgets[i]);
    budget_count = 0;
    card_count = 0;
    announce = false;
    return claim_folders_visit(attach_folder) ? budget_count : -1;
}

static bool take_slot(struct budget *budget) {
    if (budget->slot != NO_SLOT) return true;
    lock_take(&budget->sweeping);
    if (!is_ours(budget) && !open_descriptor(budget)) {
        lock_release(&budget->sweeping);
        return false;
    }
    lower_descriptor(budget);
    budget->slot = region_take_slot(budget->descriptor, budget->region);
    lock_release(&budget->sweeping);
    if (budget->slot != NO_SLOT) return true;
    message_refusal(budget->folder, "all %d places for processes are in use; end some of them",
                    REGION_SLOTS);
    return false;
}

bool budgets_take_slots(void) {
    bool taken = true;
    for (int i = 0; taken && i < budget_count; i++) taken = take_slot(&budgets[i]);
    return taken;
}

void budgets_tell_unknown_names(uint64_t count) {
    for (int i = 0; i < budget_count; i++)
        atomic_store(&budgets[i].region->slots[budgets[i].slot].unknown_names, count);
}

void budgets_refuse_cards(void) {
    const uint8_t *uuid = budget_count && budgets[0].share_count ? budgets[0].uuids[0] : NULL;
    char text[33] = "none";
    for (int i = 0; uuid && i < 16; i++) snprintf(text + 2 * i, 3, "%02x", uuid[i]);
    message_refusal(budgets[0].folder,
                    "no card of the CUDA driver is in the policy, whose first is %s; "
                    "prepare the claim for the cards that are here", text);
}

bool budgets_announce(void) { return announce; }

void budgets_after_fork(void) {
    for (int i = 0; i < MAX_BUDGETS; i++) {
        if (budgets[i].region) close_descriptor(&budgets[i]);
        lock_reset(&budgets[i].refreshing);
        lock_reset(&budgets[i].sweeping);
    }
}

struct card *budgets_card(const uint8_t uuid[16]) {
    for (unsigned int i = 0; i < card_count; i++)
        if (memcmp(cards[i].uuid, uuid, sizeof cards[i].uuid) == 0) return &cards[i];
    return NULL;
}

struct card *budgets_card_at(unsigned int number) {
    return number < card_count ? &cards[number] : NULL;
}

static bool same_cards(const struct budget *budget, const struct policy_copy *limits) {
    bool same = limits->card_count == budget->share_count;
    for (unsigned int i = 0; same && i < budget->share_count; i++)
        same = memcmp(budget->uuids[i], limits->cards[i].uuid, sizeof budget->uuids[i]) == 0;
    return same;
}

/* A policy that cannot be read now, or that names other cards, leaves the limits as they were. */
static void read_limits_again(struct budget *budget) {
    struct policy_copy limits;
    uint64_t index;
    if (!policy_read(budget->policy, TRIES_LATER, &limits, &index)) return;
    if (!same_cards(budget, &limits)) return;
    for (unsigned int i = 0; i < budget->share_count; i++)
        set_limits(&budget->shares[i], &limits.cards[i]);
    atomic_store(&budget->policy_index, index);
    metering_limits_changed();
}

void budget_read_again(struct budget *budget) {
    if (!lock_try(&budget->refreshing)) return;
    read_limits_again(budget);
    lock_release(&budget->refreshing);
}

void budget_sweep(struct budget *budget) {
    lock_take(&budget->sweeping);
    if (is_ours(budget))
        region_sweep(budget->descriptor, budget->region, budget->slot, budget->keeps);
    lock_release(&budget->sweeping);
}

void budget_sweep_if_due(struct budget *budget) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    uint64_t swept_ns = atomic_load_explicit(&budget->swept_ns, memory_order_relaxed);
    if (now_ns - swept_ns < SWEEP_PERIOD_NS) return;
    if (atomic_compare_exchange_strong(&budget->swept_ns, &swept_ns, now_ns)) budget_sweep(budget);
}

bool budget_keep(struct budget *budget, int slot) {
    lock_take(&budget->sweeping);
    bool kept = is_ours(budget) &&
                (budget->keeps[slot] || region_keep(budget->descriptor, slot, true));
    if (kept) budget->keeps[slot]++;
    lock_release(&budget->sweeping);
    return kept;
}

void budget_let_go(struct budget *budget, int slot) {
    lock_take(&budget->sweeping);
    if (--budget->keeps[slot] == 0 && is_ours(budget))
        region_keep(budget->descriptor, slot, false);
    lock_release(&budget->sweeping);
}

bool budget_is_kept(struct budget *budget) {
    lock_take(&budget->sweeping);
    bool kept = budget->keeps[budget->slot] || region_is_kept(budget->descriptor, budget->slot);
    lock_release(&budget->sweeping);
    return kept;
}
