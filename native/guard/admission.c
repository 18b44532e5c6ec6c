#include "admission.h"

#include "pacing.h"
#include "turn.h"

static const uint64_t WANT_PERIOD_NS = 1000 * 1000;
static const uint64_t FINE_POLL_NS = 20 * 1000, TURN_POLL_NS = 40 * 1000;
static const uint64_t EARLY_POLL_NS = 150 * 1000; /* a quantum may end early, but seldom does */
static const uint64_t COARSE_POLL_NS = 500 * 1000, LATE_NS = 500 * 1000;
static const uint64_t IDLE_NS = 700 * 1000; /* a holder that does nothing gives way after it */
static const uint64_t SHORT_DEBT_NS = 300 * 1000;

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* Estimated work that is not done yet, and how long work has gone on for much longer than that. */
struct backlog {
    uint64_t left_ns, late_ns;
};

static void add_backlog(const struct meter *meter, struct timeline *timeline, uint64_t now_ns,
                        struct backlog *backlog) {
    uint64_t sum_ns = 0;
    for (int i = 0; i < BRACKETS; i++) {
        const struct bracket *bracket = &timeline->brackets[i];
        if (bracket->state == BRACKET_FLYING || bracket->state == BRACKET_OPEN)
            sum_ns += bracket->queued_ns;
    }
    const struct bracket *oldest = timeline_oldest(timeline);
    uint64_t running_ns =
        oldest ? less(now_ns, larger(oldest->launched_ns, meter->done_ns)) : 0;
    uint64_t known_ns = oldest ? oldest->queued_ns : 0;
    backlog->left_ns += less(sum_ns, smaller(running_ns, known_ns));
    if (running_ns > 2 * known_ns + LATE_NS)
        backlog->late_ns = larger(backlog->late_ns, running_ns);
}

static struct backlog backlog_of(struct meter *meter, uint64_t now_ns) {
    struct backlog backlog = {0};
    for (int i = 0; i < METER_CONTEXTS; i++)
        if (meter->timelines[i].count)
            add_backlog(meter, &meter->timelines[i], now_ns, &backlog);
    return backlog;
}

/* When to ask again whether work is done: often near its expected end, seldom long before or
 * behind it. */
static uint64_t until_done(const struct backlog *backlog) {
    uint64_t rest_ns = larger(less(backlog->left_ns, FINE_POLL_NS), backlog->late_ns / 8);
    return larger(FINE_POLL_NS, smaller(rest_ns, COARSE_POLL_NS));
}

static bool is_flying(const struct meter *meter) {
    for (int i = 0; i < METER_CONTEXTS; i++)
        for (int j = 0; meter->timelines[i].count && j < BRACKETS; j++)
            if (meter->timelines[i].brackets[j].state == BRACKET_FLYING ||
                meter->timelines[i].brackets[j].state == BRACKET_OPEN)
                return true;
    return false;
}

static bool is_drained(const struct meter *meter, uint64_t now_ns) {
    return !is_flying(meter) && now_ns >= meter->unmarked_until_ns;
}

static bool holds_card(const struct meter *meter) {
    return turn_is_ours(meter->share) && (!meter->has_others || meter->schedule.holds_lease);
}

static void give_way(struct meter *meter, uint64_t now_ns) {
    schedule_give_lease(&meter->schedule, meter->next, now_ns);
    turn_give(meter->share);
    meter->is_leaving = false;
    meter->unmarked_ns = 0;
}

static void leave(struct meter *meter, int next, uint64_t now_ns) {
    if (!meter->is_leaving) {
        meter_stop_fast_path(meter);
        meter->unmarked_until_ns = now_ns + meter->unmarked_ns;
        meter->is_leaving = true;
        meter->next = next;
    }
    if (is_drained(meter, now_ns)) give_way(meter, now_ns);
}

static int successor(struct meter *meter, bool is_idle, uint64_t now_ns) {
    int next = schedule_successor(&meter->schedule, is_idle, meter->used_ns, meter->waited_ns,
                                  now_ns);
    meter->used_ns = 0;
    meter->waited_ns = 0;
    return next;
}

/* At the end of a quantum, or when there is nothing to do: whether somebody else should go on. */
static bool should_leave(struct meter *meter, bool is_idle, uint64_t now_ns) {
    int next = meter->has_others ? successor(meter, is_idle, now_ns) : NO_TENANT;
    bool wanted = turn_is_wanted(meter->share, now_ns);
    if (next == NO_TENANT && !wanted) {
        meter->began_ns = now_ns;
        turn_renew(meter->share, now_ns);
        return false;
    }
    leave(meter, next, now_ns);
    return true;
}

/* A holder shows that it is alive and fair by what it writes at the end of each quantum. One that
 * does not is not waited for for ever. */
static bool is_stalled(struct meter *meter, uint64_t now_ns) {
    uint64_t mark = turn_is_ours(meter->share)
                        ? schedule_mark(&meter->schedule)
                        : atomic_load(meter_word(meter->share, COMPUTE_TURN_SINCE));
    if (mark != meter->stalled_mark || !meter->stalled_ns) {
        meter->stalled_mark = mark;
        meter->stalled_ns = now_ns;
    }
    return now_ns - meter->stalled_ns > PACING_PATIENCE_NS;
}

static bool hold_card(struct meter *meter, uint64_t now_ns) {
    bool had_turn = turn_is_ours(meter->share);
    if (!turn_take(meter->share, now_ns)) return false;
    bool had_lease = !meter->has_others || meter->schedule.holds_lease;
    if (!had_turn || !had_lease) meter->began_ns = now_ns;
    return !meter->has_others || !meter->has_schedule ||
           schedule_take_lease(&meter->schedule, now_ns);
}

static uint64_t wait_for_card(struct meter *meter, uint64_t now_ns) {
    if (hold_card(meter, now_ns)) {
        meter->stalled_ns = 0;
        meter->held_ns += meter->held_since_ns ? now_ns - meter->held_since_ns : 0;
        meter->held_since_ns = 0;
        return 0;
    }
    if (!meter->held_since_ns) meter->held_since_ns = now_ns;
    if (meter->has_others && now_ns - meter->wanted_ns > WANT_PERIOD_NS) {
        meter->wanted_ns = now_ns;
        schedule_want(&meter->schedule, now_ns);
    }
    uint64_t quantum_ns = now_ns - meter->schedule.other_since_ns;
    bool is_early = quantum_ns < PACING_QUANTUM_NS - 2 * EARLY_POLL_NS;
    if (!is_stalled(meter, now_ns)) return is_early ? EARLY_POLL_NS : TURN_POLL_NS;
    meter->held_since_ns = 0;
    return 0;
}

static uint64_t wait_for_cap(struct meter *meter, uint64_t now_ns) {
    const struct share *share = meter_payer(meter);
    uint32_t cores = atomic_load(&share->cores);
    if (!pacing_is_cap(cores)) return 0;
    bool in_line = !meter->has_others || holds_card(meter) || meter->held_since_ns;
    uint64_t save_ns = in_line ? 0 : PACING_TURN_NS * 100 / cores;
    uint64_t debt_ns = less(atomic_load(meter_word(share, COMPUTE_PAID_UNTIL)) + save_ns, now_ns);
    if (debt_ns > SHORT_DEBT_NS &&
        (meter->schedule.holds_lease || turn_is_wanted(meter->share, now_ns))) {
        successor(meter, true, now_ns);
        leave(meter, NO_TENANT, now_ns);
        if (meter->is_leaving) return smaller(debt_ns, FINE_POLL_NS);
    }
    return debt_ns;
}

static uint64_t wait_for_queue(struct meter *meter, const struct cost *cost, uint64_t now_ns) {
    struct backlog backlog = backlog_of(meter, now_ns);
    bool shared = meter->has_others || turn_is_wanted(meter->share, now_ns);
    uint64_t most_ns = shared ? PACING_SHARED_QUEUE_NS : PACING_LONE_QUEUE_NS;
    bool is_learning = !cost->estimate.samples && cost->flying;
    if (!is_learning && !backlog.late_ns && backlog.left_ns <= most_ns) return 0;
    if (!is_learning) backlog.left_ns = less(backlog.left_ns, most_ns);
    return until_done(&backlog);
}

uint64_t admission_wait(struct meter *meter, const struct cost *cost, uint64_t now_ns) {
    if (meter->is_leaving) {
        leave(meter, meter->next, now_ns);
        struct backlog backlog = backlog_of(meter, now_ns);
        return meter->is_leaving ? until_done(&backlog) : TURN_POLL_NS;
    }
    uint64_t wait_ns = wait_for_cap(meter, now_ns);
    if (!wait_ns) wait_ns = wait_for_card(meter, now_ns);
    if (wait_ns) return wait_ns;
    if (holds_card(meter) && now_ns - meter->began_ns >= PACING_QUANTUM_NS &&
        should_leave(meter, false, now_ns))
        return FINE_POLL_NS;
    return wait_for_queue(meter, cost, now_ns);
}

void admission_tick(struct meter *meter, uint64_t now_ns) {
    meter_settle(meter, now_ns);
    if (meter->is_leaving) {
        leave(meter, meter->next, now_ns);
        return;
    }
    if (!turn_is_ours(meter->share) || meter->held_since_ns) return;
    uint64_t last_ns = larger(meter->launched_ns, meter->done_ns);
    bool is_idle = !is_flying(meter) && now_ns - last_ns > IDLE_NS;
    if (is_idle || now_ns - meter->began_ns >= PACING_QUANTUM_NS)
        should_leave(meter, is_idle, now_ns);
}
