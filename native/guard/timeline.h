/* When work was done, told by events of the driver: brackets of two events around a launch, per
 * context. Events are only recorded on a stream by the thread that launches on it.
 *
 * Called under the lock of metering, but for bracket_open and bracket_close. */
#ifndef CASABA_TIMELINE_H
#define CASABA_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_api.h"
#include "launch_costs.h"

/* Around this library's own calls about events, which must not disturb a capture that any thread
 * has begun. */
struct own_calls {
    CUstreamCaptureMode mode;
    bool is_exchanged;
};

struct own_calls own_calls_begin(void);
void own_calls_end(struct own_calls *calls);

enum { BRACKETS = 32, BRACKETS_AT_ONCE = BRACKETS - 2 };

enum bracket_state { BRACKET_FREE, BRACKET_OPEN, BRACKET_FLYING, BRACKET_DONE };

struct bracket {
    enum bracket_state state;
    bool has_events, is_fine; /* is_fine: the cost of recording is measured, too */
    CUevent gauge, start, end;
    struct cost *cost; /* NULL: a mere mark */
    uint64_t key;
    uint64_t charged_ns;  /* for this launch, so far */
    uint64_t queued_ns;   /* of this launch and the ones since the bracket before it */
    uint64_t launched_ns; /* CLOCK_MONOTONIC */
};

struct timeline {
    CUcontext context; /* NULL: unused */
    bool is_broken;    /* its events tell nothing any more */
    unsigned int oldest, count;
    const struct bracket *latest; /* that was done; its end is where the next one's time begins */
    struct bracket brackets[BRACKETS];
};

/* A bracket for a launch by this thread, whose current context is the timeline's. NULL: none. */
struct bracket *timeline_claim(struct timeline *timeline);

/* Around the launch. False: no event could be recorded. */
bool bracket_open(struct bracket *bracket, CUstream stream);
bool bracket_close(struct bracket *bracket, CUstream stream);

/* The next bracket that was found done since the last call; NULL: no more. `busy_ns` gets the time
 * that the card was busy with it and with nothing measured before. */
struct bracket *timeline_next_done(struct timeline *timeline, uint64_t *busy_ns);

/* Frees the brackets that are done. */
void timeline_trim(struct timeline *timeline);

/* The oldest that is still flying, or NULL. */
struct bracket *timeline_oldest(struct timeline *timeline);

#endif
