/* The cards' time as one process sees it: the model of card_schedule.h, joined with the clock and
 * shared by all processes of the host.
 *
 * A card's schedule is changed by one process at a time, for some tens of nanoseconds. Its owner is
 * told by slot, so that one who is killed meanwhile is seen to be dead (the lock of its slot is
 * gone) and is replaced. A dead process's work is dropped within a millisecond.
 *
 * All but queue_copy() need a slot, and the caller excludes its own other threads. */
#ifndef CASABA_CARD_QUEUE_H
#define CASABA_CARD_QUEUE_H

#include "card_account.h"
#include "card_schedule.h"

/* Queues work of this process; the position at which it is done. */
uint64_t queue_submit(struct account *account, unsigned card, uint64_t work_ns);

/* How long the position will take at least; 0: it is done. */
uint64_t queue_left_ns(struct account *account, unsigned card, uint64_t position_ns);

/* The time of a position: the present when it is already done, else 0 and the position is marked;
 * ask queue_marked_ns() later. `full` is set when marks have to be read first. */
uint64_t queue_mark(struct account *account, unsigned card, uint64_t position_ns, bool *full);
uint64_t queue_marked_ns(struct account *account, unsigned card, uint64_t position_ns);

/* How many marks are passed, and the position that is; and that so many are read, so that they may
 * be overwritten. */
uint64_t queue_marks_passed(struct account *account, unsigned card, uint64_t *position_ns);
void queue_marks_read(struct account *account, unsigned card, uint64_t count);

/* Closes the account that the slot's last owner left on every card and opens this process's. */
void queue_open(struct account *account);

/* A copy of a card's schedule without its marks, carried on to the present; to be freed. NULL when
 * there is no memory. Also for readers. */
struct schedule *queue_copy(struct account *account, unsigned card);

/* CLOCK_MONOTONIC. */
uint64_t clock_ns(void);

#endif
