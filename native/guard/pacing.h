/* The arithmetic of shares of a card's time: no state of its own, no clock, no I/O. Times in ns. */
#ifndef CASABA_PACING_H
#define CASABA_PACING_H

#include <stdbool.h>
#include <stdint.h>

#include "layouts.h"

/* What an idle tenant may save up: it covers waits for a turn and sleeps that end late. */
static const uint64_t PACING_BURST_NS = 20 * 1000 * 1000;
/* And of waiting for a neighbour's turn to end, this much more at most. */
static const uint64_t PACING_HELD_NS = 200 * 1000 * 1000;
/* How long one tenant goes on while others wait. */
static const uint64_t PACING_QUANTUM_NS = 8 * 1000 * 1000;
/* Whom its cap has held back asks for the card again when so much is paid for: not for less, since
 * each change of hands costs all of them some time of the card. */
static const uint64_t PACING_TURN_NS = 2 * 1000 * 1000;
/* Launches go on while no more than this is queued: little where others wait, so that giving the
 * card up is quick; more where nobody does, so that a program that is not scheduled for some ms
 * loses nothing. */
static const uint64_t PACING_SHARED_QUEUE_NS = 4 * 1000 * 1000;
static const uint64_t PACING_LONE_QUEUE_NS = 16 * 1000 * 1000;
/* A tenant that is held back says so again well within this time. */
static const uint64_t PACING_WANTED_NS = 20 * 1000 * 1000;
/* Longer without wanting the card is idleness of its own choice. */
static const uint64_t PACING_IDLE_NS = 2 * 1000 * 1000;
/* How far a tenant may be ahead or behind in what it has used: more than a long kernel makes is not
 * believed, since any tenant can write to the schedule. */
static const uint64_t PACING_LAG_NS = 200 * 1000 * 1000;
/* Nobody is held back longer than this by a holder that does not give way. */
static const uint64_t PACING_PATIENCE_NS = 250 * 1000 * 1000;

/* Whether a percentage is a cap at all. */
static inline bool pacing_is_cap(uint32_t cores) { return cores > 0 && cores < 100; }

/* The weight of a tenant: what the policy says, else its cores, else 100. */
uint32_t pacing_weight(uint32_t weight, uint32_t cores);

/* When the cap has paid for `busy_ns` more (or less, where a charge was too high). 0 as
 * `paid_until_ns`: nothing was charged yet, and nothing is saved up. Of the last `held_ns` the
 * tenant waited for others: what it could have used then is not lost. */
uint64_t pacing_charge(uint64_t paid_until_ns, uint64_t now_ns, uint64_t held_ns, int64_t busy_ns,
                       uint32_t cores);

/* Busy time in the currency that tenants of different weight compare. */
uint64_t pacing_virtual(uint64_t busy_ns, uint32_t weight);

struct contender {
    bool present; /* some process of it lives */
    uint64_t virtual_ns, wanted_ns, active_ns;
};

/* Who should have the card instead of `own`, at the end of its quantum: -1: nobody. */
int pacing_successor(const struct contender *list, int count, int own, uint64_t now_ns);

/* Where a tenant starts again: idleness is not saved up, waiting is, within bounds. */
uint64_t pacing_rebase(const struct contender *list, int count, int own, uint32_t weight,
                       uint64_t now_ns);

/* How long a function runs, learnt from measurements. All zero: unknown. */
struct estimate {
    uint64_t mean_ns, last_ns[2];
    uint32_t samples;
};

/* The median of the last three goes into a moving mean: one measurement that was disturbed (the
 * program was not scheduled between two of its calls) changes nothing. */
void pacing_learn(struct estimate *estimate, uint64_t measured_ns);

#endif
