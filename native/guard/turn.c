#include "turn.h"

#include "pacing.h"
#include "region.h"

static atomic_u64 *word(const struct share *share, unsigned int which) {
    return &share->budget->region->cards[share->index].compute[which];
}

static uint64_t own(const struct share *share) { return (uint64_t)share->budget->slot + 1; }

bool turn_is_ours(const struct share *share) {
    return atomic_load_explicit(word(share, COMPUTE_TURN), memory_order_relaxed) == own(share);
}

static bool is_dead(const struct share *share, uint64_t holder) {
    return holder > REGION_SLOTS ||
           region_is_dead(share->budget->descriptor, (int)holder - 1);
}

bool turn_take(struct share *share, uint64_t now_ns) {
    uint64_t holder = atomic_load(word(share, COMPUTE_TURN));
    if (holder == own(share)) return true;
    if (holder != 0 && !is_dead(share, holder)) {
        atomic_store(word(share, COMPUTE_TURN_WANTED), now_ns);
        return false;
    }
    if (!atomic_compare_exchange_strong(word(share, COMPUTE_TURN), &holder, own(share)))
        return false;
    atomic_store(word(share, COMPUTE_TURN_WANTED), 0);
    turn_renew(share, now_ns);
    return true;
}

bool turn_is_wanted(const struct share *share, uint64_t now_ns) {
    uint64_t wanted_ns = atomic_load(word(share, COMPUTE_TURN_WANTED));
    return wanted_ns && (wanted_ns > now_ns || now_ns - wanted_ns <= PACING_WANTED_NS);
}

void turn_renew(struct share *share, uint64_t now_ns) {
    atomic_store(word(share, COMPUTE_TURN_SINCE), now_ns);
}

void turn_give(struct share *share) {
    uint64_t holder = own(share);
    atomic_compare_exchange_strong(word(share, COMPUTE_TURN), &holder, 0);
}
