/* What each kind of launch costs: GPU time learnt per function (or executable graph) and size. */
#ifndef CASABA_LAUNCH_COSTS_H
#define CASABA_LAUNCH_COSTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "layouts.h"
#include "pacing.h"

/* A credit word holds a count of launches above and, below, nanoseconds that may still be launched,
 * plus a bias, so that going below zero does not borrow from the count: one addition does both. */
enum { CREDIT_BITS = 44 };
static const uint64_t CREDIT_LAUNCH = UINT64_C(1) << CREDIT_BITS;
static const uint64_t CREDIT_BIAS = UINT64_C(1) << (CREDIT_BITS - 1);
static const uint64_t COST_MOST_NS = UINT64_C(1) << 36;

struct cost {
    _Alignas(64) atomic_u64 key; /* 0: free */
    atomic_u64 step;             /* added to a credit word by one launch; 0: not known yet */
    struct estimate estimate;
    uint32_t flying; /* measurements that are not done */
};

enum { COST_BITS = 11, COSTS = 1 << COST_BITS };
extern __attribute__((visibility("hidden"))) struct cost launch_costs[COSTS];

static inline uint64_t cost_key(const void *launched, uint64_t blocks) {
    uint64_t size = 64 - (uint64_t)__builtin_clzll(blocks | 1);
    return (uint64_t)(uintptr_t)launched ^ (size << 57);
}

static inline unsigned int cost_home(uint64_t key) {
    return (unsigned int)((key * 0x9e3779b97f4a7c15u) >> (64 - COST_BITS));
}

/* The rest is called under the lock of metering. */

/* The place of a key, made where there is none; NULL: all places near it are in use by
 * measurements. */
struct cost *cost_of(uint64_t key);

/* A launch was measured. */
void cost_learn(struct cost *cost, uint64_t measured_ns);

/* A handle may mean something else from now on; `costs_forget` all of them. */
void cost_forget(uint64_t key);
void costs_forget(void);

#endif
