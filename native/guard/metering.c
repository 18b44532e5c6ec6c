#include "metering.h"

#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "admission.h"
#include "drivers.h"
#include "keep_errno.h"
#include "lock.h"
#include "membership.h"
#include "meter.h"
#include "placement.h"
#include "watcher.h"

enum { SLEEP_SLACK_NS = 1000 };
static const uint64_t SPIN_NS = 25 * 1000, WAKE_NS = 8 * 1000, SLEEP_MOST_NS = 20 * 1000 * 1000;
static const uint64_t FINE_BELOW_NS = 200 * 1000;
static const uint64_t BUSY_TICK_NS = 1000 * 1000, IDLE_TICK_NS = 10 * 1000 * 1000;
static const uint64_t LEAVING_TICK_NS = 50 * 1000, QUIET_AFTER_NS = 100 * 1000 * 1000;

atomic_uintptr_t metering_gate = GATE_UNKNOWN;
atomic_u64 metering_unmetered;

/* Unlike other locks this one is held across driver calls: those about events, which never wait for
 * another thread's. */
static struct lock lock;
static struct meter meters[MAX_CARDS];
static int meter_count;
static atomic_int open_captures;
static uint64_t unmetered_told;

static uint64_t now_ns(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void relax(void) {
#ifdef __x86_64__
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

/* The kernel may let a thread sleep 50 us longer than it asked to; not here. */
static void sleep_for(uint64_t ns) {
    const struct timespec sleep = {.tv_nsec = (long)ns};
    int slack_ns = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, SLEEP_SLACK_NS);
    nanosleep(&sleep, NULL);
    if (slack_ns > 0) prctl(PR_SET_TIMERSLACK, slack_ns);
}

static void pause_for(uint64_t ns) {
    uint64_t until_ns = now_ns() + ns;
    if (ns > SPIN_NS) sleep_for((ns < SLEEP_MOST_NS ? ns : SLEEP_MOST_NS) - WAKE_NS);
    while (ns <= SPIN_NS && now_ns() < until_ns) relax();
}

/* All cards of the budgets have a meter, also those that nothing was launched on yet. */
static struct meter *meter_of(const struct card *card, uint64_t moment_ns) {
    struct card *next;
    while (meter_count < MAX_CARDS && (next = budgets_card_at((unsigned int)meter_count))) {
        meter_begin(&meters[meter_count], next);
        meter_look(&meters[meter_count++], moment_ns);
    }
    for (int i = 0; card && i < meter_count; i++)
        if (meters[i].card == card) return &meters[i];
    return NULL;
}

static bool has_one_device(void) {
    int count = 0;
    __typeof__(&cuDeviceGetCount) ask =
        (__typeof__(&cuDeviceGetCount))driver_entry(ENTRY_cuDeviceGetCount);
    return ask && ask(&count) == CUDA_SUCCESS && count == 1;
}

/* Under the lock. With one device every launch is on it, so no launch has to ask where it is. */
static void set_gate(void) {
    static int one_device = -1;
    bool metered = false;
    for (int i = 0; i < meter_count; i++) metered |= meters[i].is_metered;
    if (metered && one_device < 0) one_device = has_one_device();
    bool direct = one_device == 1 && meter_count == 1 && atomic_load(&open_captures) == 0;
    atomic_store(&metering_gate, !metered ? (uintptr_t)GATE_OPEN
                                 : direct ? (uintptr_t)&meters[0].credit
                                          : (uintptr_t)GATE_SLOW);
}

enum capture_state { NOT_CAPTURING, CAPTURING, UNSURE };

/* Unsure: the legacy stream while another stream captures, which must not be touched then. */
static enum capture_state capture_state(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    __typeof__(&cuStreamIsCapturing) ask =
        (__typeof__(&cuStreamIsCapturing))driver_entry(ENTRY_cuStreamIsCapturing);
    if (atomic_load(&open_captures) == 0 || !ask) return NOT_CAPTURING;
    if (ask(stream, &status) != CUDA_SUCCESS) return UNSURE;
    return status == CU_STREAM_CAPTURE_STATUS_NONE ? NOT_CAPTURING : CAPTURING;
}

/* Launches while the gate was open, for those who look at the region. */
static void tell_unmetered(struct meter *meter) {
    uint64_t count = atomic_load_explicit(&metering_unmetered, memory_order_relaxed);
    if (count == unmetered_told) return;
    meter_count_launches(meter, count - unmetered_told);
    unmetered_told = count;
}

/* Under the lock, which is given away while waiting. */
static struct cost *wait_for_leave(struct meter *meter, uint64_t key) {
    uint64_t began_ns = now_ns(), waited_ns = 0;
    struct cost *cost;
    for (;;) {
        uint64_t moment_ns = now_ns();
        meter_look(meter, moment_ns);
        meter_settle(meter, moment_ns);
        cost = cost_of(key);
        uint64_t wait_ns = meter->is_metered && cost ? admission_wait(meter, cost, moment_ns) : 0;
        if (wait_ns == 0) break;
        lock_release(&lock);
        pause_for(wait_ns);
        lock_take(&lock);
        waited_ns = now_ns() - began_ns;
    }
    meter_tell_wait(meter, waited_ns);
    return cost;
}

static struct bracket *claim(struct meter *meter, CUcontext context, struct cost *cost,
                             uint64_t key) {
    struct timeline *timeline = meter_timeline(meter, context);
    struct bracket *bracket = timeline ? timeline_claim(timeline) : NULL;
    if (!bracket) return NULL;
    bracket->cost = cost;
    bracket->key = key;
    bracket->is_fine = cost->estimate.mean_ns < FINE_BELOW_NS;
    cost->flying++;
    return bracket;
}

static void let_go(struct ticket *ticket, struct meter *meter, CUcontext context, uint64_t key) {
    struct cost *cost = wait_for_leave(meter, key);
    uint64_t moment_ns = now_ns();
    if (!meter->is_metered || !cost) {
        meter_count_launches(meter, 1);
        return;
    }
    ticket->meter = meter;
    meter_stop_fast_path(meter);
    ticket->charged_ns = meter_grant(meter, cost, moment_ns);
    if (ticket->may_measure) ticket->bracket = claim(meter, context, cost, key);
    if (!ticket->bracket) {
        if (!cost->estimate.samples) meter_charge_unknown(meter, moment_ns);
        return;
    }
    ticket->bracket->charged_ns = ticket->charged_ns;
    ticket->bracket->queued_ns = ticket->charged_ns + meter->unmarked_ns;
    ticket->bracket->launched_ns = moment_ns;
    meter->unmarked_ns = 0;
}

static bool is_watched(void) {
    bool watched = false;
    for (int i = 0; i < meter_count; i++)
        watched |= meters[i].is_metered || meters[i].has_schedule;
    return watched;
}

void metering_begin(struct ticket *ticket, const void *launched, uint64_t blocks,
                    CUstream stream) {
    CUcontext context;
    *ticket = (struct ticket){.stream = stream};
    enum stance stance = membership_join();
    if (stance == UNGUARDED) atomic_store(&metering_gate, GATE_OPEN);
    if (stance != GUARDED) return;
    enum capture_state capture = capture_state(stream);
    if (capture == CAPTURING) return;
    ticket->may_measure = capture == NOT_CAPTURING;
    const struct card *card = placement_of_thread(&context);
    struct own_calls own_calls = own_calls_begin();
    lock_take(&lock);
    struct meter *meter = meter_of(card, now_ns());
    if (meter) {
        meter_stop_fast_path(meter);
        let_go(ticket, meter, context, cost_key(launched, blocks));
        tell_unmetered(meter);
    }
    set_gate();
    bool watched = is_watched();
    lock_release(&lock);
    if (watched) watcher_start();
    if (ticket->bracket) ticket->is_opened = bracket_open(ticket->bracket, stream);
    own_calls_end(&own_calls);
}

void metering_end(struct ticket *ticket, CUresult result) {
    struct bracket *bracket = ticket->bracket;
    if (!ticket->meter) return;
    struct own_calls own_calls = own_calls_begin();
    bool closed = bracket && bracket_close(bracket, ticket->stream);
    own_calls_end(&own_calls);
    lock_take(&lock);
    if (bracket) {
        if (result != CUDA_SUCCESS || !ticket->is_opened || !closed) {
            if (bracket->cost && bracket->cost->flying) bracket->cost->flying--;
            bracket->cost = NULL;
        }
        bracket->state = closed ? BRACKET_FLYING : BRACKET_DONE;
    }
    if (result != CUDA_SUCCESS) meter_refund(ticket->meter, ticket->charged_ns, now_ns());
    lock_release(&lock);
}

void metering_count_capture(int change) {
    int before = atomic_fetch_add(&open_captures, change);
    if (before + change < 0) atomic_store(&open_captures, 0);
    if (atomic_load(&metering_gate) <= GATE_UNKNOWN) return;
    lock_take(&lock);
    set_gate();
    lock_release(&lock);
}

void metering_forget_graph(CUgraphExec exec) {
    lock_take(&lock);
    cost_forget(cost_key(exec, 0));
    lock_release(&lock);
}

void metering_forget_functions(void) {
    lock_take(&lock);
    costs_forget();
    lock_release(&lock);
}

void metering_forget_context(CUcontext context) {
    lock_take(&lock);
    for (int i = 0; i < meter_count; i++)
        if (meter_forget_context(&meters[i], context)) costs_forget();
    lock_release(&lock);
}

void metering_limits_changed(void) {
    uintptr_t open = GATE_OPEN;
    atomic_compare_exchange_strong(&metering_gate, &open, GATE_UNKNOWN);
}

static uint64_t tick(struct meter *meter, uint64_t moment_ns) {
    meter_look(meter, moment_ns);
    if (meter->is_metered) admission_tick(meter, moment_ns);
    tell_unmetered(meter);
    if (meter->is_leaving) return LEAVING_TICK_NS;
    bool quiet = !meter->is_metered || moment_ns - meter->launched_ns > QUIET_AFTER_NS;
    return quiet ? IDLE_TICK_NS : BUSY_TICK_NS;
}

uint64_t metering_tick(void) {
    uint64_t soonest_ns = IDLE_TICK_NS;
    struct own_calls own_calls = own_calls_begin();
    lock_take(&lock);
    for (int i = 0; i < meter_count; i++) {
        uint64_t next_ns = tick(&meters[i], now_ns());
        if (next_ns < soonest_ns) soonest_ns = next_ns;
    }
    if (meter_count) set_gate();
    lock_release(&lock);
    own_calls_end(&own_calls);
    return soonest_ns;
}

void metering_after_fork(void) {
    for (int i = 0; i < meter_count; i++) schedule_after_fork(&meters[i].schedule);
    memset(meters, 0, sizeof meters);
    meter_count = 0;
    unmetered_told = 0;
    lock_reset(&lock);
    costs_forget();
    atomic_store(&metering_unmetered, 0);
    atomic_store(&open_captures, 0);
    atomic_store(&metering_gate, GATE_UNKNOWN);
    watcher_after_fork();
}
