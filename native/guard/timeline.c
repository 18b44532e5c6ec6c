#include "timeline.h"

#include <stddef.h>

#include "drivers.h"

#define DRIVER(name) ((__typeof__(&name))driver_entry(ENTRY_##name))

static bool exchange(CUstreamCaptureMode *mode) {
    __typeof__(&cuThreadExchangeStreamCaptureMode) real = DRIVER(cuThreadExchangeStreamCaptureMode);
    return real && real(mode) == CUDA_SUCCESS;
}

struct own_calls own_calls_begin(void) {
    struct own_calls calls = {.mode = CU_STREAM_CAPTURE_MODE_RELAXED};
    calls.is_exchanged = exchange(&calls.mode);
    return calls;
}

void own_calls_end(struct own_calls *calls) {
    if (calls->is_exchanged) exchange(&calls->mode);
}

static struct bracket *at(struct timeline *timeline, unsigned int place) {
    return &timeline->brackets[(timeline->oldest + place) % BRACKETS];
}

static bool make_event(CUevent *event) {
    __typeof__(&cuEventCreate) create = DRIVER(cuEventCreate);
    return create && create(event, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
}

static bool make_events(struct bracket *bracket) {
    if (!bracket->has_events)
        bracket->has_events = make_event(&bracket->gauge) && make_event(&bracket->start) &&
                              make_event(&bracket->end);
    return bracket->has_events;
}

struct bracket *timeline_claim(struct timeline *timeline) {
    if (timeline->is_broken || timeline->count >= BRACKETS_AT_ONCE) return NULL;
    struct bracket *bracket = at(timeline, timeline->count);
    if (!make_events(bracket)) {
        timeline->is_broken = true;
        return NULL;
    }
    bracket->state = BRACKET_OPEN;
    timeline->count++;
    return bracket;
}

static bool record(CUevent event, CUstream stream) {
    __typeof__(&cuEventRecord) real = DRIVER(cuEventRecord);
    return real && real(event, stream) == CUDA_SUCCESS;
}

bool bracket_open(struct bracket *bracket, CUstream stream) {
    if (bracket->is_fine && !record(bracket->gauge, stream)) return false;
    return record(bracket->start, stream);
}

bool bracket_close(struct bracket *bracket, CUstream stream) {
    return record(bracket->end, stream);
}

static bool elapsed(CUevent from, CUevent to, uint64_t *ns) {
    float milliseconds = 0;
    __typeof__(&cuEventElapsedTime) real = DRIVER(cuEventElapsedTime);
    if (!real || real(&milliseconds, from, to) != CUDA_SUCCESS) return false;
    *ns = milliseconds > 0 ? (uint64_t)((double)milliseconds * 1e6) : 0;
    return true;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* From its start, or from the end of the work measured before if that was later. */
static uint64_t busy_time(const struct timeline *timeline, const struct bracket *bracket) {
    uint64_t busy_ns, gauge_ns, since_ns;
    if (!elapsed(bracket->start, bracket->end, &busy_ns)) return bracket->charged_ns;
    if (bracket->is_fine && elapsed(bracket->gauge, bracket->start, &gauge_ns))
        busy_ns -= smaller(gauge_ns, busy_ns);
    if (timeline->latest && elapsed(timeline->latest->end, bracket->end, &since_ns))
        busy_ns = smaller(busy_ns, since_ns);
    return busy_ns;
}

static bool is_done(struct timeline *timeline, const struct bracket *bracket) {
    __typeof__(&cuEventQuery) query = DRIVER(cuEventQuery);
    CUresult result = query ? query(bracket->end) : CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_ERROR_NOT_READY) return false;
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_CAPTURED_EVENT) timeline->is_broken = true;
    return true;
}

struct bracket *timeline_next_done(struct timeline *timeline, uint64_t *busy_ns) {
    for (unsigned int i = 0; i < timeline->count; i++) {
        struct bracket *bracket = at(timeline, i);
        if (bracket->state != BRACKET_FLYING || !is_done(timeline, bracket)) continue;
        *busy_ns = timeline->is_broken || !bracket->cost ? bracket->charged_ns
                                                         : busy_time(timeline, bracket);
        bracket->state = BRACKET_DONE;
        timeline->latest = timeline->is_broken ? NULL : bracket;
        return bracket;
    }
    return NULL;
}

void timeline_trim(struct timeline *timeline) {
    while (timeline->count && at(timeline, 0)->state == BRACKET_DONE) {
        at(timeline, 0)->state = BRACKET_FREE;
        timeline->oldest = (timeline->oldest + 1) % BRACKETS;
        timeline->count--;
    }
}

struct bracket *timeline_oldest(struct timeline *timeline) {
    for (unsigned int i = 0; i < timeline->count; i++)
        if (at(timeline, i)->state == BRACKET_FLYING) return at(timeline, i);
    return NULL;
}
