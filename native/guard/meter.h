/* A card's time as this process gets it: what was launched, what it cost, and who pays. Everything
 * but the credit word is used under the lock of metering only. */
#ifndef CASABA_METER_H
#define CASABA_METER_H

#include "budget.h"
#include "cuda_api.h"
#include "launch_costs.h"
#include "schedule.h"
#include "timeline.h"

enum { METER_CONTEXTS = 4 };

struct meter {
    _Alignas(64) atomic_u64 credit; /* what the fast path lives on */
    _Alignas(64) struct card *card;
    struct share *share;            /* that the tenant is known by */
    struct schedule schedule;
    bool is_metered, has_schedule, has_others;
    bool is_leaving;                /* launches nothing more until it has given way */
    int next;                       /* tenant for whom it gives way */
    uint64_t granted_ns, spare_ns;  /* put into the credit word; left of earlier grants */
    uint64_t unmarked_ns;           /* launched since the last bracket */
    uint64_t unmarked_until_ns;     /* when that is surely done, once launching has stopped */
    uint64_t used_ns, waited_ns;    /* not posted in the schedule yet */
    uint64_t held_since_ns;         /* waiting for the card; 0: not */
    uint64_t held_ns;               /* so long, before the launch that is let go now */
    uint64_t began_ns;              /* the quantum */
    uint64_t done_ns;               /* when a bracket was last seen done */
    uint64_t launched_ns;           /* when the slow path last let one go */
    uint64_t looked_ns, wanted_ns;  /* last look at limits and others; last word of waiting */
    uint64_t stalled_mark, stalled_ns; /* what a holder last wrote, and since when */
    uint64_t random;
    struct timeline timelines[METER_CONTEXTS];
};

static inline atomic_u64 *meter_word(const struct share *share, unsigned int which) {
    return &share->budget->region->cards[share->index].compute[which];
}

void meter_begin(struct meter *meter, struct card *card);

/* The budget that pays next: of several for one card, the one with most left. One without a cap
 * pays for all. */
struct share *meter_payer(const struct meter *meter);

/* Whether anything limits or shares the card now. Looks at most every few ms. */
void meter_look(struct meter *meter, uint64_t now_ns);

/* Stops the fast path and finds out what it has launched. */
void meter_stop_fast_path(struct meter *meter);

/* Takes up what was measured. */
void meter_settle(struct meter *meter, uint64_t now_ns);

/* Lets one launch go and gives the fast path credit for more like it. Returns what was charged for
 * the one. */
uint64_t meter_grant(struct meter *meter, const struct cost *cost, uint64_t now_ns);

/* A launch that can neither be measured nor is known: an assumed time. */
void meter_charge_unknown(struct meter *meter, uint64_t now_ns);

/* Takes back the charge of a launch that the driver refused. */
void meter_refund(struct meter *meter, uint64_t charged_ns, uint64_t now_ns);

/* Add to what the region tells of this process and its budget. */
void meter_count_launches(struct meter *meter, uint64_t launches);
void meter_tell_wait(struct meter *meter, uint64_t waited_ns);

struct timeline *meter_timeline(struct meter *meter, CUcontext context);
bool meter_forget_context(struct meter *meter, CUcontext context);

#endif
