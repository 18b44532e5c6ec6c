#include "known_contexts.h"

#include "lock.h"

enum { ROOM = 64 };

static struct known {
    _Atomic(CUcontext) context; /* NULL: empty */
    _Atomic(struct card *) card;
} known[ROOM];

static struct lock lock; /* of changes */
static _Atomic(struct known *) only;
static bool too_many; /* for ever: some are not in `known` */

void contexts_after_fork(void) {
    for (int i = 0; i < ROOM; i++) atomic_store(&known[i].context, NULL);
    atomic_store(&only, NULL);
    too_many = false;
    lock_reset(&lock);
}

static struct known *find(CUcontext context) {
    for (int i = 0; i < ROOM; i++)
        if (atomic_load(&known[i].context) == context) return &known[i];
    return NULL;
}

static void choose_only(void) {
    struct known *found = NULL;
    int count = too_many;
    for (int i = 0; i < ROOM; i++)
        if (atomic_load(&known[i].context)) {
            found = &known[i];
            count++;
        }
    atomic_store(&only, count == 1 ? found : NULL);
}

void contexts_appeared(CUcontext context, struct card *card) {
    lock_take(&lock);
    struct known *place = find(context);
    if (!place) place = find(NULL);
    too_many |= !place;
    if (place) {
        atomic_store(&only, NULL);
        atomic_store(&place->card, card);
        atomic_store(&place->context, context);
    }
    choose_only();
    lock_release(&lock);
}

bool contexts_vanished(CUcontext context, struct card **card) {
    lock_take(&lock);
    struct known *place = context ? find(context) : NULL;
    if (place) {
        *card = atomic_load(&place->card);
        atomic_store(&place->context, NULL);
        choose_only();
    }
    lock_release(&lock);
    return place != NULL;
}

bool contexts_only(CUcontext *context, struct card **card) {
    struct known *place = atomic_load_explicit(&only, memory_order_acquire);
    if (!place) return false;
    *context = atomic_load_explicit(&place->context, memory_order_relaxed);
    *card = atomic_load_explicit(&place->card, memory_order_relaxed);
    return *context != NULL;
}
