#include "names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "membership.h"

static const char *const known[] = {
#define NAME(name, kind) #name,
#include "driver_names.def"
#undef NAME
};

static atomic_ullong unknown;

static int compare(const void *name, const void *entry) {
    return strcmp(name, *(const char *const *)entry);
}

static bool is_known(const char *name) {
    return bsearch(name, known, sizeof known / sizeof known[0], sizeof known[0], compare) != NULL;
}

static bool is_cuda(const char *name) {
    return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

void names_asked(const char *name) {
    if (!is_cuda(name) || is_known(name)) return;
    atomic_fetch_add(&unknown, 1);
    if (membership_has_joined()) names_tell();
}

void names_tell(void) { budgets_tell_unknown_names(atomic_load(&unknown)); }

void names_after_fork(void) { atomic_store(&unknown, 0); }
