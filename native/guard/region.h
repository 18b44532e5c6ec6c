/* The accounting file of one budget, shared with other processes: include/region.def.
 * Any of them can truncate it, which kills every process that has it mapped by SIGBUS; its size is
 * checked where it is opened. What it says is used only to count: no index or pointer comes from
 * it unchecked. */
#ifndef CASABA_REGION_H
#define CASABA_REGION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "layouts.h"

enum { GUARD_VERSION = 0x00000100 /* 0.1.0, a byte each */, NO_SLOT = -1 };

/* Maps it and tells which file it is. The descriptor for the locks must be another: a mapping keeps
 * its own alive, also in a fork child that has closed it, and with it the lock of a dead parent.
 * NULL: it cannot be used, and that was said. */
struct region_file *region_map(const char *path, struct stat *identity);

/* A descriptor for the locks of that same file; -1: none, and that was said. */
int region_open(const char *path, const struct stat *identity);

/* Takes a free or dead slot; NO_SLOT: all are in use. Only one thread at a time may call this or
 * region_sweep for one descriptor: its locks are the process's. */
int region_take_slot(int descriptor, struct region_file *region);

/* Zeroes what dead processes left, all but `own` slot and those that this process keeps: it has
 * `keeps[slot]` things open that are on their account. */
void region_sweep(int descriptor, struct region_file *region, int own,
                  const unsigned int keeps[REGION_SLOTS]);

/* Holds a slot against being zeroed. False: it is being zeroed now. */
bool region_keep(int descriptor, int slot, bool keep);

/* Whether other processes hold it. */
bool region_is_kept(int descriptor, int slot);

/* Words of the region's exports. `_find`: the slot with this identity, NO_SLOT: none. */
void region_add_export(struct region_file *region, uint64_t word);
void region_remove_export(struct region_file *region, uint64_t word);
int region_find_export(const struct region_file *region, uint64_t identity);

/* Whether nobody holds the lock of a slot (asked by another than its holder). */
bool region_is_dead(int descriptor, int slot);

/* Slots that were ever used: words beyond are zero. */
static inline unsigned int region_high_water(const struct region_file *region) {
    uint32_t mark = atomic_load_explicit(&region->high_water, memory_order_seq_cst);
    return mark < REGION_SLOTS ? mark : REGION_SLOTS;
}

/* Adds up one word array of a card. */
static inline uint64_t region_sum(const struct region_file *region, const atomic_u64 *words) {
    uint64_t sum = 0;
    unsigned int mark = region_high_water(region);
    for (unsigned int slot = 0; slot < mark; slot++) {
        uint64_t word = atomic_load_explicit(&words[slot], memory_order_seq_cst);
        sum = sum + word < sum ? UINT64_MAX : sum + word;
    }
    return sum;
}

#endif
