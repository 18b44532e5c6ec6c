#include "sharing.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lock.h"
#include "region.h"

static const uint64_t FNV_OFFSET = 0xcbf29ce484222325u, FNV_PRIME = 0x100000001b3u;
enum { SLOT_BITS = 8 };

/* FNV-1a. */
static uint64_t hash(uint64_t seed, const void *bytes, size_t count) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++) seed = (seed ^ byte[i]) * FNV_PRIME;
    return seed;
}

static uint64_t identity_of(uint64_t hashed) {
    uint64_t identity = hashed >> SLOT_BITS;
    return identity ? identity : 1;
}

uint64_t sharing_identity(const void *handle, size_t bytes) {
    return identity_of(hash(FNV_OFFSET, handle, bytes));
}

/* Device nodes are all the same file. A place in a file travels with the copies of its descriptor,
 * and a driver may tell pieces of memory apart by it. The program may close the descriptor at any
 * time and open another under its number, which is then told by its identity: asked by system calls
 * themselves, since thread sanitizers take the functions for a use that the program must order. */
uint64_t sharing_identity_of_file(int descriptor) {
    struct stat status;
    if (syscall(SYS_fstat, descriptor, &status) != 0 || S_ISCHR(status.st_mode)) return 0;
    long place = syscall(SYS_lseek, descriptor, 0L, SEEK_CUR);
    uint64_t hashed = hash(FNV_OFFSET, &status.st_dev, sizeof status.st_dev);
    hashed = hash(hashed, &status.st_ino, sizeof status.st_ino);
    return identity_of(hash(hashed, &place, sizeof place));
}

static uint64_t word_of(uint64_t identity, int slot) {
    return identity << SLOT_BITS | (uint64_t)slot;
}

/* Where there is no place left the memory is charged to its importers, too. */
void sharing_export(const struct card *card, uint64_t identity) {
    if (!identity) return;
    for (unsigned int i = 0; i < card->share_count; i++) {
        const struct budget *budget = card->shares[i]->budget;
        region_add_export(budget->region, word_of(identity, budget->slot));
    }
}

void sharing_withdraw(const struct card *card, uint64_t identity) {
    if (!identity) return;
    for (unsigned int i = 0; i < card->share_count; i++) {
        const struct budget *budget = card->shares[i]->budget;
        region_remove_export(budget->region, word_of(identity, budget->slot));
    }
}

struct parked {
    struct parked *next;
    const struct card *card;
    struct charge charge;
    int file;
    uint64_t identity; /* of the file */
};

static struct lock lock; /* of the list */
static struct parked *all_parked;

void sharing_after_fork(void) {
    lock_reset(&lock);
    all_parked = NULL;
}

static bool is_kept(const struct card *card) {
    bool kept = false;
    for (unsigned int i = 0; !kept && i < card->share_count; i++)
        kept = budget_is_kept(card->shares[i]->budget);
    return kept;
}

static bool must_stay(const struct parked *parked) {
    bool open = parked->file >= 0 && sharing_identity_of_file(parked->file) == parked->identity;
    return open || is_kept(parked->card);
}

static void park(struct parked *parked) {
    lock_take(&lock);
    parked->next = all_parked;
    all_parked = parked;
    lock_release(&lock);
}

/* Without memory to remember the charge it stays until the process ends. */
void sharing_return(const struct card *card, struct charge *charge, int file, uint64_t identity) {
    const struct parked kept = {
        .card = card, .charge = *charge, .file = file, .identity = identity};
    if (!must_stay(&kept)) {
        account_return(charge);
        return;
    }
    struct parked *parked = malloc(sizeof *parked);
    if (parked) {
        *parked = kept;
        park(parked);
    }
    *charge = (struct charge){0};
}

bool sharing_settle(void) {
    bool any = false;
    lock_take(&lock);
    struct parked *parked = all_parked;
    all_parked = NULL;
    lock_release(&lock);
    while (parked) {
        struct parked *next = parked->next;
        if (must_stay(parked)) {
            park(parked);
        } else {
            account_return(&parked->charge);
            free(parked);
            any = true;
        }
        parked = next;
    }
    return any;
}

/* The word is looked at again with the slot kept: its owner may have been dead and swept. */
static int keep_one(struct budget *budget, uint64_t identity) {
    int slot = region_find_export(budget->region, identity);
    if (slot == NO_SLOT || !budget_keep(budget, slot)) return NO_SLOT;
    if (region_find_export(budget->region, identity) == slot) return slot;
    budget_let_go(budget, slot);
    return NO_SLOT;
}

bool sharing_keep(const struct card *card, uint64_t identity, struct keep *keep) {
    bool kept = false;
    *keep = (struct keep){.card = card};
    for (unsigned int i = 0; i < card->share_count; i++) {
        keep->slots[i] = identity ? keep_one(card->shares[i]->budget, identity) : NO_SLOT;
        kept |= keep->slots[i] != NO_SLOT;
    }
    return kept;
}

/* What was parked because of this process's own imports may not have to be any more. */
void sharing_let_go(struct keep *keep) {
    bool kept = keep->card != NULL;
    for (unsigned int i = 0; keep->card && i < keep->card->share_count; i++)
        if (keep->slots[i] != NO_SLOT)
            budget_let_go(keep->card->shares[i]->budget, keep->slots[i]);
    keep->card = NULL;
    if (kept) sharing_settle();
}
