/* The law of shares, alone, on a card and a clock that are only numbers. Prints what two tenants
 * got in percent: weights and caps are arguments, kernels take their times in turn. */
#include <stdio.h>
#include <stdlib.h>

#include "pacing.h"

enum { TENANTS = 2, RUN_S = 20 };

struct tenant {
    uint32_t cores, weight;
    uint64_t kernel_ns, paid_until_ns, busy_ns, wanted_ns;
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Runs one quantum of a tenant from `now_ns`; the time behind it. */
static uint64_t quantum(struct tenant *tenant, struct contender *contender, uint64_t now_ns) {
    uint64_t end_ns = now_ns + PACING_QUANTUM_NS;
    uint64_t held_ns = tenant->wanted_ns && now_ns > tenant->wanted_ns
                           ? now_ns - tenant->wanted_ns : 0;
    while (now_ns < end_ns && tenant->paid_until_ns <= now_ns) {
        if (pacing_is_cap(tenant->cores))
            tenant->paid_until_ns = pacing_charge(tenant->paid_until_ns, now_ns,
                                                  held_ns, (int64_t)tenant->kernel_ns,
                                                  tenant->cores);
        held_ns = 0;
        tenant->busy_ns += tenant->kernel_ns;
        contender->virtual_ns += pacing_virtual(tenant->kernel_ns, tenant->weight);
        now_ns += tenant->kernel_ns;
    }
    tenant->wanted_ns = pacing_is_cap(tenant->cores) ? tenant->paid_until_ns : now_ns;
    return now_ns;
}

/* All want the card as soon as their cap lets them. */
static int choose(const struct tenant *tenants, struct contender *list, int last,
                  uint64_t now_ns) {
    for (int i = 0; i < TENANTS; i++)
        list[i].wanted_ns = tenants[i].paid_until_ns <= now_ns ? now_ns : 0;
    int next = pacing_successor(list, TENANTS, last, now_ns);
    return next >= 0 ? next : list[last].wanted_ns ? last : (last + 1) % TENANTS;
}

int main(int count, char **arguments) {
    struct tenant tenants[TENANTS] = {{0}};
    struct contender list[TENANTS] = {{.present = true}, {.present = true}};
    uint64_t now_ns = 1000000000, end_ns = now_ns + RUN_S * UINT64_C(1000000000);
    if (count != 1 + 3 * TENANTS) return 2;
    for (int i = 0; i < TENANTS; i++) {
        tenants[i].cores = (uint32_t)atoi(arguments[1 + 3 * i]);
        tenants[i].weight =
            pacing_weight((uint32_t)atoi(arguments[2 + 3 * i]), tenants[i].cores);
        tenants[i].kernel_ns = (uint64_t)atoi(arguments[3 + 3 * i]) * 1000;
    }
    for (int turn = 0; now_ns < end_ns;) {
        turn = choose(tenants, list, turn, now_ns);
        uint64_t after_ns = quantum(&tenants[turn], &list[turn], now_ns);
        if (after_ns == now_ns)
            after_ns = least(tenants[0].paid_until_ns, tenants[1].paid_until_ns);
        now_ns = after_ns > now_ns ? after_ns : now_ns + 1000;
    }
    for (int i = 0; i < TENANTS; i++)
        printf("%.2f\n", (double)tenants[i].busy_ns * 100 / (RUN_S * 1e9));
    return 0;
}
