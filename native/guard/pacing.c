#include "pacing.h"

enum { FULL_WEIGHT = 100, MEAN_OVER = 4 };

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t before(uint64_t now_ns, uint64_t ns) { return now_ns > ns ? now_ns - ns : 0; }

uint32_t pacing_weight(uint32_t weight, uint32_t cores) {
    if (weight) return weight;
    return pacing_is_cap(cores) ? cores : FULL_WEIGHT;
}

uint64_t pacing_charge(uint64_t paid_until_ns, uint64_t now_ns, uint64_t held_ns, int64_t busy_ns,
                       uint32_t cores) {
    uint64_t saved_ns = PACING_BURST_NS * 100 / cores + smaller(held_ns, PACING_HELD_NS);
    uint64_t oldest_ns = before(now_ns, saved_ns);
    uint64_t from_ns = paid_until_ns ? larger(paid_until_ns, oldest_ns) : now_ns;
    uint64_t size = busy_ns < 0 ? (uint64_t)-busy_ns : (uint64_t)busy_ns;
    uint64_t wall_ns = size / cores * 100 + size % cores * 100 / cores;
    return busy_ns < 0 ? before(from_ns, wall_ns) : from_ns + wall_ns;
}

uint64_t pacing_virtual(uint64_t busy_ns, uint32_t weight) {
    return weight ? busy_ns * FULL_WEIGHT / weight : busy_ns * FULL_WEIGHT;
}

static bool is_recent(uint64_t then_ns, uint64_t now_ns, uint64_t within_ns) {
    return then_ns && (then_ns >= now_ns ? then_ns - now_ns : now_ns - then_ns) <= within_ns;
}

static bool is_waiting(const struct contender *one, uint64_t now_ns) {
    return one->present && is_recent(one->wanted_ns, now_ns, PACING_WANTED_NS);
}

int pacing_successor(const struct contender *list, int count, int own, uint64_t now_ns) {
    int best = -1;
    for (int i = 0; i < count; i++) {
        if (i == own || !is_waiting(&list[i], now_ns)) continue;
        if (list[i].virtual_ns > list[own].virtual_ns) continue;
        if (best < 0 || list[i].virtual_ns < list[best].virtual_ns) best = i;
    }
    return best;
}

/* The least that others have used who have to do with the card now; UINT64_MAX: nobody has. */
static uint64_t least_used(const struct contender *list, int count, int own, uint64_t now_ns) {
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < count; i++)
        if (i != own && list[i].present &&
            (is_waiting(&list[i], now_ns) ||
             is_recent(list[i].active_ns, now_ns, PACING_WANTED_NS)))
            least_ns = smaller(least_ns, list[i].virtual_ns);
    return least_ns;
}

uint64_t pacing_rebase(const struct contender *list, int count, int own, uint32_t weight,
                       uint64_t now_ns) {
    uint64_t least_ns = least_used(list, count, own, now_ns), used_ns = list[own].virtual_ns;
    uint64_t lag_ns = pacing_virtual(PACING_LAG_NS, weight);
    if (least_ns == UINT64_MAX) return used_ns;
    if (used_ns > least_ns && used_ns - least_ns > lag_ns) return least_ns + lag_ns;
    if (!is_recent(list[own].active_ns, now_ns, PACING_IDLE_NS)) return larger(used_ns, least_ns);
    return larger(used_ns, before(least_ns, lag_ns));
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c) {
    return larger(smaller(a, b), smaller(larger(a, b), c));
}

void pacing_learn(struct estimate *estimate, uint64_t measured_ns) {
    uint64_t *last = estimate->last_ns;
    uint32_t samples = estimate->samples;
    uint64_t typical = samples >= 2 ? median(measured_ns, last[0], last[1])
                                    : samples ? smaller(measured_ns, last[0]) : measured_ns;
    last[1] = last[0];
    last[0] = measured_ns;
    if (samples < UINT32_MAX) estimate->samples = samples + 1;
    if (samples < 2)
        estimate->mean_ns = larger(typical, 1);
    else if (typical > estimate->mean_ns)
        estimate->mean_ns += (typical - estimate->mean_ns) / MEAN_OVER;
    else
        estimate->mean_ns -= (estimate->mean_ns - typical) / MEAN_OVER;
}
