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

/* Zeroes what dead processes left, all but `own` slot. */
void region_sweep(int descriptor, struct region_file *region, int own);

/* Adds up one word array of a card. */
uint64_t region_sum(const struct region_file *region, const atomic_u64 *words);

#endif
