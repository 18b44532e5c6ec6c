#include "meter.h"

#include <string.h>
#include <time.h>

#include "drivers.h"
#include "pacing.h"

static const uint64_t LOOK_PERIOD_NS = 10 * 1000 * 1000;
static const uint64_t CHUNK_NS = 400 * 1000, OVERDUE_NS = 500 * 1000, ASSUMED_NS = 100 * 1000;

#define DRIVER(name) ((__typeof__(&name))driver_entry(ENTRY_##name))

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

static struct region_slot *own_slot(const struct meter *meter) {
    const struct budget *budget = meter->share->budget;
    return &budget->region->slots[budget->slot];
}

static uint64_t boot_time_ns(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void meter_begin(struct meter *meter, struct card *card) {
    memset(meter, 0, sizeof *meter);
    atomic_store(&meter->credit, CREDIT_BIAS);
    meter->card = card;
    meter->share = card->shares[0];
    meter->random = boot_time_ns() | 1;
    schedule_name(&meter->schedule, meter->share->budget->folder, card->uuid);
}

struct share *meter_payer(const struct meter *meter) {
    struct share *best = meter->card->shares[0];
    for (unsigned int i = 0; i < meter->card->share_count; i++) {
        struct share *share = meter->card->shares[i];
        if (!pacing_is_cap(atomic_load(&share->cores))) return share;
        if (atomic_load(meter_word(share, COMPUTE_PAID_UNTIL)) <
            atomic_load(meter_word(best, COMPUTE_PAID_UNTIL)))
            best = share;
    }
    return best;
}

static uint32_t cap(const struct share *share) { return atomic_load(&share->cores); }

void meter_look(struct meter *meter, uint64_t now_ns) {
    if (now_ns - meter->looked_ns < LOOK_PERIOD_NS && meter->looked_ns) return;
    meter->looked_ns = now_ns;
    for (unsigned int i = 0; i < meter->card->share_count; i++)
        budget_refresh(meter->card->shares[i]->budget);
    uint32_t cores = cap(meter->share);
    meter->schedule.cores = cores;
    meter->schedule.weight = pacing_weight(atomic_load(&meter->share->weight), cores);
    meter->has_schedule = schedule_join(&meter->schedule, &meter->has_others);
    meter->is_metered = pacing_is_cap(cap(meter_payer(meter))) || meter->has_others;
}

static void charge(struct meter *meter, int64_t busy_ns, uint64_t now_ns) {
    struct share *share = meter_payer(meter);
    uint32_t cores = cap(share);
    atomic_fetch_add(meter_word(share, COMPUTE_BUSY), (uint64_t)busy_ns);
    atomic_fetch_add(&own_slot(meter)->gpu_time_ns, (uint64_t)busy_ns);
    meter->used_ns = busy_ns < 0 ? less(meter->used_ns, (uint64_t)-busy_ns)
                                 : meter->used_ns + (uint64_t)busy_ns;
    if (!pacing_is_cap(cores)) return;
    atomic_u64 *paid_until = meter_word(share, COMPUTE_PAID_UNTIL);
    uint64_t seen = atomic_load(paid_until);
    while (!atomic_compare_exchange_weak(paid_until, &seen,
                                         pacing_charge(seen, now_ns, meter->held_ns, busy_ns,
                                                       cores))) {
    }
}

void meter_count_launches(struct meter *meter, uint64_t launches) {
    if (launches == 0) return;
    atomic_fetch_add(&own_slot(meter)->launches, launches);
    atomic_store(&own_slot(meter)->last_launch_ns, boot_time_ns());
}

/* Stops the fast path and finds out what it has launched. */
void meter_stop_fast_path(struct meter *meter) {
    uint64_t found = atomic_exchange(&meter->credit, CREDIT_BIAS);
    uint64_t left = less(found & (CREDIT_LAUNCH - 1), CREDIT_BIAS);
    meter->unmarked_ns += less(meter->granted_ns, left);
    meter->spare_ns += smaller(left, meter->granted_ns);
    meter->granted_ns = 0;
    meter_count_launches(meter, found >> CREDIT_BITS);
}

static void finish(struct meter *meter, struct bracket *bracket, uint64_t busy_ns,
                   uint64_t now_ns) {
    struct cost *cost = bracket->cost;
    meter->done_ns = now_ns;
    if (!cost) return;
    if (cost->flying) cost->flying--;
    if (atomic_load(&cost->key) == bracket->key) cost_learn(cost, busy_ns);
    charge(meter, (int64_t)busy_ns - (int64_t)bracket->charged_ns, now_ns);
}

static void collect(struct meter *meter, struct timeline *timeline, uint64_t now_ns) {
    uint64_t busy_ns;
    for (struct bracket *done; (done = timeline_next_done(timeline, &busy_ns));)
        finish(meter, done, busy_ns, now_ns);
    timeline_trim(timeline);
}

/* The oldest launch runs longer than it was thought to: charged as it goes on. */
static void charge_overdue(struct meter *meter, struct timeline *timeline, uint64_t now_ns) {
    struct bracket *oldest = timeline_oldest(timeline);
    if (!oldest || !oldest->cost) return;
    uint64_t running_ns = less(now_ns, larger(oldest->launched_ns, meter->done_ns));
    uint64_t before_ns = less(oldest->queued_ns, oldest->charged_ns);
    uint64_t over_ns = less(running_ns, before_ns + oldest->charged_ns);
    if (over_ns < OVERDUE_NS) return;
    charge(meter, (int64_t)over_ns, now_ns);
    oldest->charged_ns += over_ns;
    oldest->queued_ns += over_ns;
}

static void settle_context(struct meter *meter, struct timeline *timeline, uint64_t now_ns) {
    CUcontext current = NULL, popped;
    __typeof__(&cuCtxGetCurrent) get = DRIVER(cuCtxGetCurrent);
    __typeof__(&cuCtxPushCurrent_v2) push = DRIVER(cuCtxPushCurrent_v2);
    __typeof__(&cuCtxPopCurrent_v2) pop = DRIVER(cuCtxPopCurrent_v2);
    if (!get || !push || !pop || get(&current) != CUDA_SUCCESS) return;
    bool pushed = current != timeline->context;
    if (pushed && push(timeline->context) != CUDA_SUCCESS) {
        timeline->is_broken = true;
        timeline->count = 0;
        return;
    }
    collect(meter, timeline, now_ns);
    charge_overdue(meter, timeline, now_ns);
    if (pushed) pop(&popped);
}

void meter_settle(struct meter *meter, uint64_t now_ns) {
    for (int i = 0; i < METER_CONTEXTS; i++)
        if (meter->timelines[i].count) settle_context(meter, &meter->timelines[i], now_ns);
}

static uint64_t chunk(struct meter *meter) {
    meter->random ^= meter->random << 13;
    meter->random ^= meter->random >> 7;
    meter->random ^= meter->random << 17;
    return CHUNK_NS + meter->random % (CHUNK_NS / 2);
}

uint64_t meter_grant(struct meter *meter, const struct cost *cost, uint64_t now_ns) {
    uint64_t one_ns = cost->estimate.mean_ns;
    uint64_t wanted_ns = one_ns ? less(chunk(meter), one_ns) : 0;
    uint64_t paid_ns = less(wanted_ns, meter->spare_ns);
    meter->granted_ns = wanted_ns;
    meter->spare_ns = less(meter->spare_ns, wanted_ns);
    charge(meter, (int64_t)(one_ns + paid_ns), now_ns);
    meter->held_ns = 0;
    meter_count_launches(meter, 1);
    meter->launched_ns = now_ns;
    atomic_store(&meter->credit, CREDIT_BIAS + wanted_ns);
    return one_ns;
}

void meter_charge_unknown(struct meter *meter, uint64_t now_ns) {
    charge(meter, (int64_t)ASSUMED_NS, now_ns);
}

void meter_refund(struct meter *meter, uint64_t charged_ns, uint64_t now_ns) {
    charge(meter, -(int64_t)charged_ns, now_ns);
}

void meter_tell_wait(struct meter *meter, uint64_t waited_ns) {
    if (waited_ns == 0) return;
    meter->waited_ns += waited_ns;
    atomic_fetch_add(&own_slot(meter)->wait_ns, waited_ns);
    atomic_fetch_add(meter_word(meter->share, COMPUTE_WAIT), waited_ns);
}

struct timeline *meter_timeline(struct meter *meter, CUcontext context) {
    for (int i = 0; i < METER_CONTEXTS; i++)
        if (meter->timelines[i].context == context) return &meter->timelines[i];
    for (int i = 0; i < METER_CONTEXTS; i++)
        if (!meter->timelines[i].context) {
            meter->timelines[i].context = context;
            return &meter->timelines[i];
        }
    return NULL;
}

bool meter_forget_context(struct meter *meter, CUcontext context) {
    for (int i = 0; i < METER_CONTEXTS; i++)
        if (meter->timelines[i].context == context) {
            memset(&meter->timelines[i], 0, sizeof meter->timelines[i]);
            return true;
        }
    return false;
}
