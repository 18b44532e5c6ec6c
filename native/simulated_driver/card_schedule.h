/* When a card works for whom: the model of its time.
 *
 * Each process has one channel on a card, served in the order of its launches. Channels with work
 * are served in turn, a slice each. Nothing runs in between: whoever looks carries the model on to
 * the present, so that completion times are exact however late one looks.
 *
 * A place in a channel is told by position: the work, in nanoseconds, that was queued up to there.
 * A launch is done when the channel has completed its position. A mark keeps the time at which a
 * position was passed.
 *
 * The functions here know neither clocks nor locks; card_queue.h does. */
#ifndef CASABA_CARD_SCHEDULE_H
#define CASABA_CARD_SCHEDULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLOTS = 1024, SLOT_WORDS = SLOTS / 64, MARKS = 1024, SAMPLES = 32, ENDED = 4096 };
enum { SAMPLE_PERIOD_NS = 1000000000 / 6 };

struct channel {
    uint64_t submitted_ns; /* work ever queued */
    uint64_t completed_ns; /* of that, done: the time that the card gave to this process */
    uint64_t marks_made, marks_passed;
    uint64_t marks_read; /* by their owner: those before may be overwritten */
    uint64_t serial; /* of the process: counts all that ever used the card */
    uint64_t pid;    /* as the process saw itself */
};

struct mark {
    uint64_t position_ns;
    uint64_t time_ns; /* 0: not passed yet */
};

/* One stretch of service, written down before it is carried out: a process that is killed within
 * leaves it pending and the next one repeats it. */
struct step {
    _Atomic uint32_t pending;
    uint32_t slot;
    uint64_t from_ns, run_ns; /* position and length */
    uint64_t at_ns;           /* time */
    uint64_t slice_used_ns, busy_ns; /* afterwards */
};

/* The account of a process that is gone. */
struct ended {
    uint64_t serial, pid, busy_ns;
};

struct schedule {
    _Atomic uint32_t owner;   /* slot + 1 of who changes it now, 0: nobody */
    _Atomic uint32_t changes; /* counts, for those who only read */
    uint32_t served;          /* slot */
    uint64_t now_ns;          /* CLOCK_MONOTONIC; all before is decided */
    uint64_t slice_used_ns;
    uint64_t busy_ns; /* the card's whole account */
    uint64_t next_sample_ns;
    uint64_t looked_ns; /* when the dead were last looked for */
    uint64_t last_serial, ended_count;
    struct step step;
    uint64_t waiting[SLOT_WORDS]; /* bit set: the slot's channel has work */
    struct channel channels[SLOTS];
    /* Accounts at every multiple of the period, by its number modulo SAMPLES. */
    uint64_t busy_samples_ns[SAMPLES];
    uint64_t samples_ns[SAMPLES][SLOTS];
    struct ended ended[ENDED];
};

/* What the shared file holds of each card. */
struct card_time {
    struct schedule schedule;
    struct mark marks[SLOTS][MARKS];
};

struct pace {
    uint64_t slice_ns;
    unsigned slots; /* ever used */
    struct mark (*marks)[MARKS]; /* by slot; NULL: a copy without them */
};

/* Carries the model on to `now_ns`. */
void schedule_advance(struct schedule *schedule, uint64_t now_ns, const struct pace *pace);

/* Repeats what a killed process may have left half done. */
void schedule_repair(struct schedule *schedule, struct mark (*marks)[MARKS]);

/* Adds work to a channel; the position at which it is done. */
uint64_t schedule_submit(struct schedule *schedule, unsigned slot, uint64_t work_ns);

/* A dead process's queue vanishes. */
void schedule_drop(struct schedule *schedule, unsigned slot);
bool schedule_waits(const struct schedule *schedule, unsigned slot);

/* Asks for the time of a position that is not passed. False while there are too many marks that are
 * not read yet. */
bool schedule_mark(struct card_time *time, unsigned slot, uint64_t position_ns);

/* The time at which a marked position was passed; 0: not yet, or not marked. */
uint64_t schedule_marked(const struct card_time *time, unsigned slot, uint64_t position_ns);

/* Gives a slot to a new process and closes the account of the one before. */
void schedule_open(struct schedule *schedule, unsigned slot, uint64_t pid);

#endif
