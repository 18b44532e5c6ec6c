/* Launches of this process, held back where its share of a card's time asks for it.
 *
 * The fast path reads one word: where nothing limits the card the launch goes on. Else it finds the
 * launch's cost by its function and takes it from a credit with one addition. Only when the credit
 * is used up, or the cost is unknown, does a launch take the slow path, which measures it, takes up
 * earlier measurements, and waits. */
#ifndef CASABA_METERING_H
#define CASABA_METERING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_api.h"
#include "launch_costs.h"
#include "timeline.h"

struct meter;

/* A value above GATE_SLOW is the address of the credit word of the only card. */
enum { GATE_OPEN, GATE_UNKNOWN, GATE_SLOW };
#define METERING_WORD extern __attribute__((visibility("hidden")))
METERING_WORD atomic_uintptr_t metering_gate;
METERING_WORD atomic_u64 metering_unmetered; /* launches while it was open; may miss some */

/* Whether nothing limits a launch. */
static inline bool metering_is_open(void) {
    if (atomic_load_explicit(&metering_gate, memory_order_relaxed) != GATE_OPEN) return false;
    uint64_t count = atomic_load_explicit(&metering_unmetered, memory_order_relaxed);
    atomic_store_explicit(&metering_unmetered, count + 1, memory_order_relaxed);
    return true;
}

/* Whether the launch is paid for already. `blocks`: of all its grid. */
static inline bool metering_takes_credit(const void *launched, uint64_t blocks) {
    uintptr_t gate = atomic_load_explicit(&metering_gate, memory_order_relaxed);
    if (gate <= GATE_SLOW) return false;
    atomic_u64 *credit = (atomic_u64 *)gate;
    uint64_t key = cost_key(launched, blocks);
    struct cost *cost = &launch_costs[cost_home(key)];
    if (atomic_load_explicit(&cost->key, memory_order_relaxed) != key) return false;
    uint64_t step = atomic_load_explicit(&cost->step, memory_order_relaxed);
    uint64_t after = atomic_load_explicit(credit, memory_order_relaxed) + step;
    if (step == 0 || !(after & CREDIT_BIAS)) return false;
    atomic_fetch_add_explicit(credit, step, memory_order_relaxed);
    return true;
}

/* One launch on the slow path. */
struct ticket {
    struct meter *meter; /* NULL: not metered */
    struct bracket *bracket; /* NULL: not measured */
    bool may_measure, is_opened;
    CUstream stream;
    uint64_t charged_ns;
};

/* Waits until the launch may go. */
void metering_begin(struct ticket *ticket, const void *launched, uint64_t blocks, CUstream stream);
void metering_end(struct ticket *ticket, CUresult result);

/* Captures that are open in this process: their launches only take place when a graph does. */
void metering_count_capture(int change);

/* A graph or all functions may be something else from now on; a context is about to go. */
void metering_forget_graph(CUgraphExec exec);
void metering_forget_functions(void);
void metering_forget_context(CUcontext context);

/* Limits were read anew. */
void metering_limits_changed(void);

/* One round of the thread that looks after what was launched; when the next one is due. */
uint64_t metering_tick(void);

void metering_after_fork(void);

#endif
