#include "launch_costs.h"

#include <stddef.h>

enum { PROBES = 4 };

struct cost launch_costs[COSTS];

static struct cost *place(uint64_t key, unsigned int probe) {
    return &launch_costs[(cost_home(key) + probe) & (COSTS - 1)];
}

static void begin(struct cost *cost, uint64_t key) {
    atomic_store(&cost->key, 0);
    atomic_store(&cost->step, 0);
    cost->estimate = (struct estimate){0};
    cost->flying = 0;
    atomic_store(&cost->key, key);
}

struct cost *cost_of(uint64_t key) {
    struct cost *free_place = NULL;
    for (unsigned int probe = 0; probe < PROBES; probe++) {
        struct cost *cost = place(key, probe);
        if (atomic_load_explicit(&cost->key, memory_order_relaxed) == key) return cost;
        if (!free_place && atomic_load_explicit(&cost->key, memory_order_relaxed) == 0)
            free_place = cost;
    }
    for (unsigned int probe = 0; !free_place && probe < PROBES; probe++)
        if (place(key, probe)->flying == 0) free_place = place(key, probe);
    if (free_place) begin(free_place, key);
    return free_place;
}

void cost_learn(struct cost *cost, uint64_t measured_ns) {
    pacing_learn(&cost->estimate, measured_ns < COST_MOST_NS ? measured_ns : COST_MOST_NS);
    atomic_store_explicit(&cost->step, CREDIT_LAUNCH - cost->estimate.mean_ns,
                          memory_order_relaxed);
}

static void forget(struct cost *cost) {
    cost->estimate = (struct estimate){0};
    atomic_store(&cost->step, 0);
}

void cost_forget(uint64_t key) {
    for (unsigned int probe = 0; probe < PROBES; probe++)
        if (atomic_load(&place(key, probe)->key) == key) forget(place(key, probe));
}

void costs_forget(void) {
    for (int i = 0; i < COSTS; i++)
        if (atomic_load_explicit(&launch_costs[i].key, memory_order_relaxed))
            forget(&launch_costs[i]);
}
