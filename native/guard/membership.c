#include "membership.h"

#include <stdatomic.h>

#include "budget.h"
#include "handles.h"
#include "imports.h"
#include "known_contexts.h"
#include "lock.h"
#include "message.h"
#include "names.h"
#include "metering.h"
#include "placement.h"
#include "pools.h"
#include "primary_contexts.h"
#include "sharing.h"
#include "virtual_memory.h"

enum state { STRANGER, OUTSIDE, LOOKING, JOINED };

static _Atomic enum state state;
static atomic_bool refused;
static struct lock changing;

/* glibc's own name: pthread_atfork would make this library need libpthread.so.0. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *library);

static void after_fork_in_child(void) {
    budgets_after_fork();
    contexts_after_fork();
    handles_after_fork();
    imports_after_fork();
    placement_after_fork();
    pools_after_fork();
    primary_contexts_after_fork();
    sharing_after_fork();
    virtual_memory_after_fork();
    metering_after_fork();
    message_forget();
    names_after_fork();
    membership_refuse(false);
    lock_reset(&changing);
    atomic_store(&state, STRANGER);
}

static void watch_forks(void) {
    static atomic_bool watched;
    if (!atomic_exchange(&watched, true)) __register_atfork(NULL, NULL, after_fork_in_child, NULL);
}

static enum state look(void) {
    watch_forks();
    int budgets = budgets_attach();
    return budgets < 0 ? STRANGER : budgets == 0 ? OUTSIDE : LOOKING;
}

/* A refusal is not remembered: the next call looks again. */
static enum state advance(enum state wanted) {
    enum state seen = atomic_load_explicit(&state, memory_order_acquire);
    if (seen == OUTSIDE || seen >= wanted) return seen;
    lock_take(&changing);
    seen = atomic_load(&state);
    if (seen == STRANGER) seen = look();
    if (seen == LOOKING && wanted == JOINED && budgets_take_slots()) {
        seen = JOINED;
        names_tell();
    }
    atomic_store_explicit(&state, seen, memory_order_release);
    lock_release(&changing);
    return seen;
}

static enum stance stance(enum state wanted) {
    enum state reached = advance(wanted);
    if (reached == OUTSIDE) return UNGUARDED;
    return reached >= wanted ? GUARDED : REFUSING;
}

enum stance membership_look(void) { return stance(LOOKING); }

enum stance membership_join(void) {
    enum stance reached = stance(JOINED);
    bool is_refused = atomic_load_explicit(&refused, memory_order_relaxed);
    return reached == GUARDED && is_refused ? REFUSING : reached;
}

void membership_refuse(bool refuse) { atomic_store(&refused, refuse); }

bool membership_has_joined(void) {
    return atomic_load_explicit(&state, memory_order_acquire) == JOINED;
}
