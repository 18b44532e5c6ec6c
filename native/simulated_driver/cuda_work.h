/* Work in streams. A process has one channel on a card (card_schedule.h), so its work is served in
 * the order of its launches, whatever the streams; a stream is done when its last position is. */
#ifndef CASABA_CUDA_WORK_H
#define CASABA_CUDA_WORK_H

#include "card_queue.h"
#include "cuda_driver.h"

enum { STREAM_LEGACY = 1, STREAM_PER_THREAD = 2 }; /* as handles */
enum { LAUNCHES_MAX = 1024 }; /* of a stream; a further one waits */

struct capture;

/* Nodes of a graph that something comes behind. */
struct node_set {
    CUgraphNode *nodes;
    size_t count;
};

struct CUstream_st {
    struct resource resource;
    unsigned flags;
    int priority;
    bool legacy; /* the default stream that waits for all blocking ones */
    unsigned long long id;
    struct capture *capture; /* NULL: none */
    struct node_set after;   /* in it: what the next node comes behind */
    uint64_t last_ns;        /* position of what was launched last */
    uint64_t launches;
    uint64_t launched_ns[LAUNCHES_MAX]; /* positions of the last ones */
};

enum event_state { EVENT_NEW, EVENT_PENDING, EVENT_DONE };

struct CUevent_st {
    struct resource resource;
    CUevent next, previous; /* of those that are pending */
    unsigned flags;
    unsigned card;
    enum event_state state;
    uint64_t position_ns;
    uint64_t time_ns;        /* CLOCK_MONOTONIC, when done */
    struct capture *capture; /* in which it was recorded */
    struct node_set after;
};

/* The handle that an entry point for per-thread default streams means. */
static inline CUstream per_thread(CUstream stream)
{
    return stream == NULL ? (CUstream)(uintptr_t)STREAM_PER_THREAD : stream;
}

/* Takes the lock and finds the stream behind a handle. */
CUresult stream_enter(CUstream *stream);

/* The position behind which all is done that the stream's next operation has to wait for. */
uint64_t stream_position(CUstream stream);

/* Queues work; waits first while the stream has too many launches. */
CUresult stream_submit(CUstream stream, uint64_t work_ns);

/* Makes the stream wait for a position of the same card. */
void stream_wait(CUstream stream, uint64_t position_ns);

/* Gives the lock away until the card has passed the position and run what is to be called there. */
void position_wait(unsigned card, uint64_t position_ns);
bool position_is_done(unsigned card, uint64_t position_ns);

/* A stream of the context; NULL when there is no memory. */
CUstream stream_make(CUcontext context, unsigned flags, int priority);

/* Gives a context its default streams. False when there is no memory. */
bool streams_begin(CUcontext context);

/* Records the event at the stream's position, or at one that is given. */
void event_record(CUevent event, CUstream stream);
void event_record_at(CUevent event, unsigned card, uint64_t position_ns);

/* Has `run` called when the card passes the stream's position, by a thread of the driver's, and
 * makes every wait for that position or a later one wait for its return too. */
CUresult callback_queue(CUstream stream, void (*run)(void *first, void *second), void *first,
                        void *second);
void callbacks_wait(unsigned card, uint64_t position_ns);

#endif
