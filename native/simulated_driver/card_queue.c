#define _GNU_SOURCE
#include "card_queue.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_PERIOD_NS = 1000000, SPINS = 100, TRIES_BETWEEN_LOOKS = 1000, COPY_TRIES = 1000 };

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void pause_a_moment(unsigned tries)
{
    if (tries > SPINS)
        sched_yield();
}

static void lock(struct account *account, struct card_time *time)
{
    struct schedule *schedule = &time->schedule;
    uint32_t own = (uint32_t)account->slot + 1;
    for (unsigned tries = 1;; tries++) {
        uint32_t owner = 0;
        if (atomic_compare_exchange_strong_explicit(&schedule->owner, &owner, own,
                                                    memory_order_acquire, memory_order_relaxed))
            return;
        pause_a_moment(tries);
        if (tries % TRIES_BETWEEN_LOOKS == 0 && !account_lives(account, owner - 1) &&
            atomic_compare_exchange_strong(&schedule->owner, &owner, own)) {
            schedule_repair(schedule, time->marks);
            return;
        }
    }
}

static void unlock(struct schedule *schedule)
{
    uint32_t changes = atomic_load_explicit(&schedule->changes, memory_order_relaxed);
    atomic_store_explicit(&schedule->changes, changes + 1, memory_order_release);
    atomic_store_explicit(&schedule->owner, 0, memory_order_release);
}

static struct pace pace_of(struct account *account, struct mark (*marks)[MARKS])
{
    return (struct pace){account->host->slice_ns, account_slots(account), marks};
}

static void drop_dead(struct account *account, struct schedule *schedule, uint64_t now_ns)
{
    if (now_ns - schedule->looked_ns < LOOK_PERIOD_NS)
        return;
    for (unsigned word = 0; word < SLOT_WORDS; word++)
        for (uint64_t bits = schedule->waiting[word]; bits != 0; bits &= bits - 1) {
            unsigned slot = word * 64 + (unsigned)__builtin_ctzll(bits);
            if (!account_lives(account, slot))
                schedule_drop(schedule, slot);
        }
    schedule->looked_ns = now_ns;
}

/* Locks the card's schedule and carries it on. */
static struct schedule *enter(struct account *account, unsigned card, uint64_t *now_ns)
{
    struct card_time *time = account_time(account, card);
    struct schedule *schedule = &time->schedule;
    const struct pace pace = pace_of(account, time->marks);
    lock(account, time);
    *now_ns = clock_ns();
    drop_dead(account, schedule, *now_ns);
    schedule_advance(schedule, *now_ns, &pace);
    return schedule;
}

uint64_t queue_submit(struct account *account, unsigned card, uint64_t work_ns)
{
    uint64_t now_ns;
    unsigned slot = (unsigned)account->slot;
    if (work_ns == 0) /* only this process changes that word */
        return account_time(account, card)->schedule.channels[slot].submitted_ns;
    struct schedule *schedule = enter(account, card, &now_ns);
    uint64_t position_ns = schedule_submit(schedule, slot, work_ns);
    unlock(schedule);
    return position_ns;
}

uint64_t queue_left_ns(struct account *account, unsigned card, uint64_t position_ns)
{
    uint64_t now_ns;
    struct schedule *schedule = &account_time(account, card)->schedule;
    const struct channel *channel = &schedule->channels[account->slot];
    if (__atomic_load_n(&channel->completed_ns, __ATOMIC_RELAXED) >= position_ns)
        return 0;
    enter(account, card, &now_ns);
    uint64_t completed_ns = channel->completed_ns;
    unlock(schedule);
    return completed_ns < position_ns ? position_ns - completed_ns : 0;
}

uint64_t queue_mark(struct account *account, unsigned card, uint64_t position_ns, bool *full)
{
    uint64_t now_ns;
    struct schedule *schedule = enter(account, card, &now_ns);
    bool done = schedule->channels[account->slot].completed_ns >= position_ns;
    *full = !done && !schedule_mark(account_time(account, card), (unsigned)account->slot,
                                    position_ns);
    unlock(schedule);
    return done ? now_ns : 0;
}

uint64_t queue_marked_ns(struct account *account, unsigned card, uint64_t position_ns)
{
    uint64_t now_ns;
    struct schedule *schedule = enter(account, card, &now_ns);
    uint64_t time_ns = schedule_marked(account_time(account, card), (unsigned)account->slot,
                                       position_ns);
    unlock(schedule);
    return time_ns;
}

uint64_t queue_marks_passed(struct account *account, unsigned card, uint64_t *position_ns)
{
    uint64_t now_ns;
    struct schedule *schedule = enter(account, card, &now_ns);
    uint64_t count = schedule->channels[account->slot].marks_passed;
    *position_ns = schedule->channels[account->slot].completed_ns;
    unlock(schedule);
    return count;
}

void queue_marks_read(struct account *account, unsigned card, uint64_t count)
{
    account_time(account, card)->schedule.channels[account->slot].marks_read = count;
}

void queue_open(struct account *account)
{
    for (unsigned card = 0; card < account->host->card_count; card++) {
        uint64_t now_ns;
        struct card_time *time = account_time(account, card);
        struct schedule *schedule = &time->schedule;
        /* The slot's last owner was killed as that of the schedule. As this process lives now, no
         * other takes it from it. */
        if (atomic_load(&schedule->owner) == (uint32_t)account->slot + 1) {
            schedule_repair(schedule, time->marks);
            unlock(schedule);
        }
        enter(account, card, &now_ns);
        schedule_open(schedule, (unsigned)account->slot, (uint64_t)getpid());
        unlock(schedule);
    }
}

static void copy(struct schedule *to, const struct schedule *from, unsigned slots)
{
    const size_t fixed = offsetof(struct schedule, channels);
    for (unsigned tries = 1; tries <= COPY_TRIES; tries++) {
        uint32_t before = atomic_load_explicit(&from->changes, memory_order_acquire);
        bool owned = atomic_load_explicit(&from->owner, memory_order_acquire) != 0;
        memcpy(to, from, fixed);
        memcpy(to->channels, from->channels, slots * sizeof to->channels[0]);
        __sync_synchronize();
        if (!owned && atomic_load_explicit(&from->changes, memory_order_relaxed) == before &&
            atomic_load_explicit(&from->owner, memory_order_relaxed) == 0)
            break;
        pause_a_moment(tries);
    }
    memcpy(to->busy_samples_ns, from->busy_samples_ns, sizeof to->busy_samples_ns);
    for (unsigned sample = 0; sample < SAMPLES; sample++)
        memcpy(to->samples_ns[sample], from->samples_ns[sample], slots * sizeof(uint64_t));
    memcpy(to->ended, from->ended, sizeof to->ended);
}

struct schedule *queue_copy(struct account *account, unsigned card)
{
    struct schedule *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    const struct pace pace = pace_of(account, NULL);
    uint64_t now_ns = clock_ns();
    copy(made, &account_time(account, card)->schedule, pace.slots);
    made->looked_ns = 0;
    drop_dead(account, made, now_ns);
    schedule_advance(made, now_ns, &pace);
    return made;
}
